/**
 *     npm run bench [-- <scenario> …]                      the service against a bare node:http server
 *     npm run bench -- against <folder> [<scenario> …]     the service against that of another checkout
 *
 * ROUNDS (5) and SECONDS (5) say how long. It needs Linux and `wrk`. Processor time varies less than the rate.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startPostgres } from '../test/harness/postgres.ts'
import type { Answer } from './bare.ts'
import { generate, PLACE, type RequestShape } from './load.ts'
import { knownSignup, type Scenario, scenarios } from './scenarios.ts'
import { here, memoryOf, processorTime, type Server, startBare, startService } from './servers.ts'

const args = process.argv.slice(2)
const other = args[0] === 'against' ? resolve(args[1]!) : null
const names = other === null ? args : args.slice(2)
const unknown = names.filter(name => !scenarios.some(scenario => scenario.name === name))
if (unknown.length > 0) throw new Error(`no scenario ${unknown}; there are ${scenarios.map(({ name }) => name)}`)
const chosen = scenarios.filter(({ name }) => names.length === 0 || names.includes(name))
const rounds = Number(process.env.ROUNDS ?? 5)
const seconds = Number(process.env.SECONDS ?? 5)

const folder = mkdtempSync(join(tmpdir(), 'waitlist-bench-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
process.stdout.write(`${rounds} rounds of ${seconds} s, ${other ?? 'a bare server'} = 1\n\n`)

/** Starts the service of a checkout, with the settings of its own bench, on a new database. */
let databases = 0
async function start(checkout: string, { service }: Pick<Scenario, 'service'>): Promise<Server> {
  const { openLimiter, shutLimiter } = (await import(
    join(checkout, 'bench/scenarios.ts')
  )) as typeof import('./scenarios.ts')
  const postgres = service === 'postgres' ? await startPostgres({ settings: { shared_buffers: '1GB' } }) : null
  const url = (await postgres?.database()) ?? `sqlite:${join(folder, `${databases++}.db`)}`
  const limiter = service === 'limited' ? shutLimiter : openLimiter
  const server = await startService(checkout, folder, { ...limiter, DATABASE_URL: url })
  return {
    ...server,
    async stop() {
      await server.stop()
      await postgres?.remove()
    },
  }
}

async function answerOf({ port }: Server, { method, path, body }: RequestShape): Promise<Answer> {
  const headers = { 'content-type': 'application/json' }
  const sent = body?.replace(PLACE, `first-${Math.random()}`)
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    ...(sent === undefined ? {} : { headers, body: sent }),
  })
  const own = new Set(['date', 'connection', 'keep-alive'])
  const kept = [...response.headers].filter(([name]) => !own.has(name))
  return { status: response.status, headers: Object.fromEntries(kept), body: await response.text() }
}

interface Measured {
  /** Requests a second, and microseconds of processor time for each. */
  readonly rate: number
  readonly time: number
}

async function measure({ port, pid }: Server, { request, status, connections }: Scenario): Promise<Measured> {
  const before = processorTime(pid)
  const { requests, seconds: took } = await generate({ port, request, status, connections, seconds })
  return { rate: requests / took, time: ((processorTime(pid) - before) / requests) * 1e6 }
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!
const rows: string[] = []
for (const scenario of chosen) {
  const pairs: (readonly [Measured, Measured])[] = []
  for (let round = 0; round < rounds; round++) {
    const subject = await start(here, scenario)
    // The first is new, the second uses up a quota of one, and the answer is that of all that follow.
    await answerOf(subject, knownSignup)
    const answer = await answerOf(subject, scenario.request)
    const baseline = other === null ? await startBare(answer) : await start(other, scenario)
    if (other !== null) await answerOf(baseline, knownSignup)
    const pair: [Measured?, Measured?] = []
    const order = round % 2 === 0 ? [0, 1] : [1, 0]
    for (const which of [...order, ...order]) pair[which] = await measure([subject, baseline][which]!, scenario)
    pairs.push(pair as [Measured, Measured])
    await subject.stop()
    await baseline.stop()
  }
  const ratio = (of: keyof Measured) => median(pairs.map(([ours, theirs]) => ours[of] / theirs[of])).toFixed(2)
  const ours = (of: keyof Measured) => Math.round(median(pairs.map(([measured]) => measured[of])))
  rows.push(`| ${scenario.name} | ${ours('rate')} | ${ratio('rate')} | ${ours('time')} | ${ratio('time')} |`)
  process.stderr.write(`${rows.at(-1)}\n`)
}
const heads = ['scenario', 'requests/s', 'rate', 'µs of processor', 'time']
process.stdout.write(`| ${heads.join(' | ')} |\n|${'---|'.repeat(heads.length)}\n${rows.join('\n')}\n\n`)

for (const [name, checkout] of [['this', here] as const, ...(other === null ? [] : [['other', other] as const])]) {
  const starts: number[] = []
  let memory = 0
  for (let i = 0; i < 5; i++) {
    const server = await start(checkout, {})
    starts.push(server.startTime)
    memory = memoryOf(server.pid)
    await server.stop()
  }
  process.stdout.write(`${name}: listens after ${Math.round(median(starts))} ms, ${Math.round(memory)} MB at rest\n`)
}
process.exit()
