/** Milliseconds. Longer than a commit takes on most disks. */
const STEP = 25

/**
 * Does something and settles as it does, but only at whole multiples of `STEP` after the call. So the time that it took
 * cannot be told from outside, unless it took longer than a step. The timer is started first: how long the work takes has
 * no part in when it fires.
 */
export function withQuantisedLatency<Result>(work: () => Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    let settle: (() => void) | undefined
    const timer = setInterval(() => {
      if (settle === undefined) return
      clearInterval(timer)
      settle()
    }, STEP)
    work().then(
      result => {
        settle = () => resolve(result)
      },
      error => {
        settle = () => reject(error)
      },
    )
  })
}
