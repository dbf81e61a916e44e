const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/** Runs what Ctrl-C ends early, instead of ending the process: it aborts the signal, and so does the end of the run. */
export async function untilStopped(run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const leaving = new AbortController()
  const leave = () => leaving.abort()
  for (const signal of SIGNALS) process.once(signal, leave)
  try {
    await run(leaving.signal)
  } finally {
    leave()
    for (const signal of SIGNALS) process.off(signal, leave)
  }
}
