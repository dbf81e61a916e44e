/** A signal for all the calls of one attempt, which have so many milliseconds in all. */
export const deadline = (milliseconds: number, stop: AbortSignal): AbortSignal =>
  AbortSignal.any([stop, AbortSignal.timeout(milliseconds)])
