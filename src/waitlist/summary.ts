/** Milliseconds between two lines. */
const QUIET = 10_000

/**
 * Keeps what happens to many deliveries alike from filling the log. The first time `each` is called; what follows within
 * ten seconds is counted, and `all` is then called once, with the last one's details.
 *
 * `clock` counts milliseconds and never goes back.
 */
export function summary<Details>(
  each: (details: Details) => void,
  all: (count: number, last: Details) => void,
  clock: () => number,
): (details: Details) => void {
  let quietUntil = Number.NEGATIVE_INFINITY
  let count = 0
  let last: Details
  let timer: ReturnType<typeof setTimeout> | undefined

  function tell(): void {
    clearTimeout(timer)
    timer = undefined
    quietUntil = clock() + QUIET
    if (count === 1) each(last)
    else all(count, last)
    count = 0
  }
  return details => {
    count++
    last = details
    if (clock() >= quietUntil) tell()
    else timer ??= setTimeout(tell, quietUntil - clock()).unref()
  }
}
