import { generator, type Load, type Measured, type RequestShape } from './load.ts'
import type { Server } from './processes.ts'
import { record } from './record.ts'
import { processorTime } from './resources.ts'

/** One measurement, with the server's processor time. */
export interface Sample extends Measured {
  /** Microseconds of processor time of the server process, all threads, for one request; NaN where unknown. */
  readonly time: number
}

/** The subject and the baseline in the same round. */
export interface Round {
  readonly subject: Sample
  readonly baseline: Sample
}

export const rateOf = ({ requests, seconds }: Measured): number => requests / seconds

/** After one request, which makes a known address known or uses up a quota, load that is not counted. */
export async function warmUp(
  { port }: Server,
  first: RequestShape,
  load: Omit<Load, 'port' | 'seconds'>,
  seconds: number,
): Promise<void> {
  await record(port, first)
  if (seconds > 0) await generator.run({ ...load, port, seconds })
}

export async function measure({ port, pid }: Server, load: Omit<Load, 'port'>): Promise<Sample> {
  const before = processorTime(pid)
  const measured = await generator.run({ ...load, port })
  return { ...measured, time: ((processorTime(pid) - before) * 1e6) / measured.requests }
}

/** One after the other, in a different order in each round. */
export async function measureBoth(
  { subject, baseline }: { readonly subject: Server; readonly baseline: Server },
  load: Omit<Load, 'port'>,
  baselineFirst: boolean,
): Promise<Round> {
  const before = baselineFirst ? await measure(baseline, load) : undefined
  const measured = await measure(subject, load)
  return { subject: measured, baseline: before ?? (await measure(baseline, load)) }
}
