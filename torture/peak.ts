import { openLoop } from '../test/harness/open-loop.ts'

/** More than can be served, for so many seconds, by clients that each wait for an answer before they send again. */
const TRIAL = { rate: 4_000, seconds: 3 }
const CLIENTS = 1_000

/** Signups a second that can be served while this process is the one that sends them. */
export async function signupPeak(baseUrl: string): Promise<number> {
  const trial = () => openLoop({ baseUrl, connections: CLIENTS, stages: [TRIAL] })
  // Once to warm up.
  await trial()
  const [outcome] = await trial()
  const { count, max } = outcome!.answers[200]!
  return count / (TRIAL.seconds + max / 1000)
}
