import autocannon from 'autocannon'
import { FRESH } from './job.ts'
import { measure } from './measure.ts'
import type { Generator, Server } from './processes.ts'
import type { Scenario } from './scenarios.ts'

/**
 * Holds the generator of this benchmark against autocannon (in a worker thread of its own): what each of them gets out
 * of the same two servers. Only scenarios in which all requests are alike can be compared without an effort that would
 * itself be measured.
 */
export async function checkGenerator(
  { name, request, status }: Scenario,
  servers: { readonly service: Server; readonly bare: Server },
  generator: Generator,
  { connections, seconds }: { readonly connections: number; readonly seconds: number },
): Promise<string> {
  if (request.body?.includes(FRESH)) return `${name}: left out, each request is another one`
  const { method, path, body } = request
  const lines: string[] = []
  for (const [who, server] of Object.entries(servers)) {
    const ours = await measure(generator, server, { request, status, connections, seconds })
    const theirs = await autocannon({
      url: `http://127.0.0.1:${server.port}${path}`,
      method,
      ...(body === undefined ? {} : { body, headers: { 'content-type': 'application/json' } }),
      connections,
      duration: seconds,
      workers: 1,
    })
    const rate = (each: number) => `${each.toFixed(0)} requests/s`
    lines.push(
      `${name}, ${who}: ${rate(ours.requests / ours.seconds)} (generator busy ${ours.busy.toFixed(2)}), ` +
        `autocannon ${rate(theirs.requests.total / theirs.duration)}`,
    )
  }
  return lines.join('\n')
}
