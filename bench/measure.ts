import type { RequestShape } from './job.ts'
import type { Generator } from './processes.ts'
import type { Sample } from './report.ts'
import { resourcesOf } from './resources.ts'

export interface Measurement {
  readonly request: RequestShape
  readonly status: number
  readonly connections: number
  readonly seconds: number
}

/** Measures one server once. An answer with another status than the expected one makes the figure worthless. */
export async function measure(
  generator: Generator,
  { port, pid }: { readonly port: number; readonly pid: number },
  { request, status, connections, seconds }: Measurement,
): Promise<Sample> {
  const before = resourcesOf(pid)
  const measured = await generator.run({ port, connections, seconds, request })
  const after = resourcesOf(pid)
  const { requests, statuses } = measured
  if (statuses[status] !== requests) {
    throw new Error(`${request.method} ${request.path} should be answered ${status}: ${JSON.stringify(statuses)}`)
  }
  const cpu = before && after ? ((after.cpu - before.cpu) * 1e6) / requests : Number.NaN
  return { ...measured, cpu }
}
