/**
 * Keeps a recurring failure from filling the log. The function it returns says whether a line may be written now: the
 * first time, and then once `quiet` milliseconds have passed since the last line. Callers that report how often
 * something happened keep their own count.
 *
 * `clock` counts milliseconds and never goes back.
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
