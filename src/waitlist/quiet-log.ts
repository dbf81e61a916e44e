/** Milliseconds between two lines. */
const QUIET = 10_000

/**
 * Keeps what happens again and again from filling the log. The first time, `line` is called at once. What follows within
 * ten seconds is counted, and `line` is then called once, with the last one's details.
 *
 * `clock` is monotonic, in milliseconds.
 */
export function summary<Details>(
  line: (count: number, last: Details) => void,
  clock: () => number = () => performance.now(),
): (details: Details) => void {
  let quietUntil = Number.NEGATIVE_INFINITY
  let count = 0
  let last: Details
  let timer: ReturnType<typeof setTimeout> | undefined

  function tell(): void {
    clearTimeout(timer)
    timer = undefined
    quietUntil = clock() + QUIET
    line(count, last)
    count = 0
  }
  return details => {
    count++
    last = details
    if (clock() >= quietUntil) tell()
    else timer ??= setTimeout(tell, quietUntil - clock()).unref()
  }
}

/**
 * Keeps a recurring failure from filling the log. The function it returns says whether a line may be written now: the
 * first time, and then once `quiet` milliseconds have passed since the last line. Callers that report how often
 * something happened keep their own count.
 *
 * `clock` is monotonic, in milliseconds.
 */
export function throttle(quiet: number, clock: () => number = () => performance.now()): () => boolean {
  let quietUntil = Number.NEGATIVE_INFINITY
  return () => {
    const now = clock()
    if (now < quietUntil) return false
    quietUntil = now + quiet
    return true
  }
}
