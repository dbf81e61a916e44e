/** Ends at once when `leave` is aborted, or was before. */
export const pause = (milliseconds: number, leave: AbortSignal) =>
  new Promise<void>(resolve => {
    if (leave.aborted) return resolve()
    const end = () => {
      clearTimeout(timer)
      leave.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    leave.addEventListener('abort', end)
  })
