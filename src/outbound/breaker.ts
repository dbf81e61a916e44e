/** Spares a side that does not answer, and those who would wait for it: opens after five such calls in a row. */
export interface Breaker {
  /** Whether no call should be made now. While it is open, one in five seconds may be, to see. */
  isOpen(): boolean
  /** To be told before every call that is made. */
  begin(): void
  /** To be told after it whether it was answered. A refusal (4xx) is an answer. */
  note(answered: boolean): void
}

/** Calls in a row that were not answered. */
const THRESHOLD = 5
/** Milliseconds between the calls that look whether it is over. */
const TRIAL = 5_000

export function breaker(now: () => number = () => performance.now()): Breaker {
  let unanswered = 0
  let nextTrial = 0
  return {
    isOpen: () => unanswered >= THRESHOLD && now() < nextTrial,
    begin() {
      if (unanswered >= THRESHOLD) nextTrial = now() + TRIAL
    },
    note(answered) {
      unanswered = answered ? 0 : unanswered + 1
      if (unanswered === THRESHOLD) nextTrial = now() + TRIAL
    },
  }
}
