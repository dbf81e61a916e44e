/** Ends at once when `signal` is aborted, or was before. */
export const pause = (milliseconds: number, signal: AbortSignal) =>
  new Promise<void>(resolve => {
    if (signal.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    signal.addEventListener('abort', end)
  })

/** Settles as the work does, or resolves with `late` after so many milliseconds. The work goes on. */
export function within<Value, Late>(work: Promise<Value>, milliseconds: number, late: Late): Promise<Value | Late> {
  const { promise, resolve } = Promise.withResolvers<Late>()
  const timer = setTimeout(resolve, milliseconds, late)
  return Promise.race([work, promise]).finally(() => clearTimeout(timer))
}

/** Whether the work resolves within so many milliseconds. Never rejects. */
export const resolvesWithin = (work: Promise<unknown>, milliseconds: number): Promise<boolean> =>
  within(
    work.then(
      () => true,
      () => false,
    ),
    milliseconds,
    false,
  )
