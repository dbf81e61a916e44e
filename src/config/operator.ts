/** Where the waitlist reports what the operator should know. Never given an address, a name or a secret. */
export interface Log {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Only the operator can fix it. The message says what is wrong and what to do, so it is shown without a stack. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
  /** More about the message, a line each. */
  readonly details: readonly string[]

  constructor(message: string, details: readonly string[] = []) {
    super(message)
    this.details = details
  }
}

/** Milliseconds between two lines. */
const QUIET = 10_000

/**
 * Keeps what happens again and again from filling the log. The first time, `line` is called at once. What follows within
 * ten seconds is counted, and `line` is then called once, with the last one's details.
 */
export function summary<Details>(line: (count: number, last: Details) => void): (details: Details) => void {
  let quietUntil = Number.NEGATIVE_INFINITY
  let count = 0
  let last: Details
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    quietUntil = performance.now() + QUIET
    line(count, last)
    count = 0
  }
  return details => {
    count++
    last = details
    if (performance.now() >= quietUntil) flush()
    else timer ??= setTimeout(flush, quietUntil - performance.now()).unref()
  }
}
