/** Failures in a row. */
const THRESHOLD = 3
/** Milliseconds. Each further pause is twice as long. */
const FIRST_PAUSE = 1_000
const LONGEST_PAUSE = 30_000

/**
 * Whether the verifier should be asked: after a few failures in a row, only one visitor in each pause waits for it, until it
 * answers again. Unlike `Breaker` (waitlist/delivery/breaker.ts) it need not find out whether a delivery is to blame.
 * `clock` is monotonic, in milliseconds.
 */
export function verifierBreaker(clock: () => number = () => performance.now()) {
  let failures = 0
  let pause = FIRST_PAUSE
  let probeAt = 0

  const answers = () => failures < THRESHOLD

  const ending = (isProbe: boolean) => (answered: boolean) => {
    if (answered) {
      failures = 0
      pause = FIRST_PAUSE
    } else if (++failures === THRESHOLD || isProbe) {
      // The others were under way already: they fail together.
      probeAt = clock() + pause
      pause = Math.min(2 * pause, LONGEST_PAUSE)
    }
  }
  const ended = ending(false)
  const probeEnded = ending(true)

  return {
    /** Null: it should not be asked. `isDue`: whether it still should be, after a wait for a connection. */
    begin() {
      if (answers()) return { isDue: answers, ended }
      if (clock() < probeAt) return null
      // The probe may hang, so the others do not wait for its end.
      probeAt = clock() + pause
      return { isDue: () => true, ended: probeEnded }
    },
  }
}
