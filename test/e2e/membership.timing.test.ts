/** `DISCLOSE_MEMBERSHIP=false`: neither the time of an answer nor the load tells whether the address was on the list before. */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { after, describe, type TestContext, test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'
import { startMailServer } from '../harness/mail-server.ts'
import { startPostgres } from '../harness/postgres.ts'
import { runProgram } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

/** Signups, half of them of new addresses. */
const SIGNUPS = 1_400
/**
 * What share of signups may be told apart. By chance alone it is off from a half by 0.013 (one standard deviation for so
 * many).
 */
const MOST = 0.53

const skip = !isSlow && 'thousands of signups; it runs in .ci/run'
const server = isSlow ? await startPostgres() : null
after(() => server?.remove())

/** What an attacker measures of one signup, in milliseconds. */
type Measures = readonly number[]

const since = (began: bigint) => Number(process.hrtime.bigint() - began) / 1e6

async function ask(
  agent: Agent,
  url: string,
  body?: string,
): Promise<{ readonly status: number; readonly took: number }> {
  const began = process.hrtime.bigint()
  return new Promise((resolve, reject) => {
    const headers =
      body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    request(url, { agent, method: body === undefined ? 'GET' : 'POST', headers }, response => {
      const took = since(began)
      response.resume().on('end', () => resolve({ status: response.statusCode!, took }))
    })
      .on('error', reject)
      .end(body)
  })
}

interface Sample {
  readonly isNew: boolean
  readonly measures: Measures
}

/** Chance decides on each signup alone, so that none is told by what the one before it has left to do. */
async function measured(t: TestContext, env: Record<string, string>, signups: number): Promise<readonly Sample[]> {
  const program = await runProgram(t, { PORT: '0', RATE_LIMIT: '1000000', ...env }, { cwd: temporaryFolder(t) })
  const agent = new Agent({ keepAlive: true })
  t.after(() => agent.destroy())
  let times: number[] = []
  let over = false
  const looping = (async () => {
    while (!over) times.push((await ask(agent, `${program.baseUrl}/nothing`)).took)
  })()
  async function signUp(email: string): Promise<Measures> {
    times = []
    const { status, took } = await ask(agent, `${program.baseUrl}/api/waitlist`, JSON.stringify({ name: 'V', email }))
    assert.equal(status, 200)
    const sorted = times.toSorted((a, b) => a - b)
    const sum = sorted.reduce((a, b) => a + b, 0)
    return [
      took,
      sorted.length,
      sum / sorted.length,
      ...[0.5, 0.9, 0.97, 1].map(q => sorted[Math.ceil(q * sorted.length) - 1]!),
    ]
  }
  for (let i = 0; i < 50; i++) await signUp('known@example.com')
  const found: Sample[] = []
  for (let i = 0; i < signups; i++) {
    const isNew = Math.random() < 0.5
    found.push({ isNew, measures: await signUp(isNew ? `visitor-${i}@example.com` : 'known@example.com') })
  }
  over = true
  await looping
  return found
}

/**
 * The share of signups that are told right by what the others have taught: of each measure how often its values, in tenths,
 * came with a new address (naive Bayes).
 */
async function told(t: TestContext, env: Record<string, string>, signups = SIGNUPS): Promise<number> {
  const found = await measured(t, env, signups)
  const halves = [found.slice(0, signups / 2), found.slice(signups / 2)]
  let right = 0
  for (const [i, unseen] of halves.entries()) {
    const looksNew = taught(halves[1 - i]!)
    for (const { isNew, measures } of unseen) right += Number(looksNew(measures) === isNew)
  }
  const share = right / signups
  t.diagnostic(`${(100 * share).toFixed(1)} % of ${signups} signups were told right`)
  return share
}

function taught(samples: readonly Sample[]): (of: Measures) => boolean {
  const scores = samples[0]!.measures.map((_, measure) => {
    const all = samples.map(({ measures }) => measures[measure]!).toSorted((a, b) => a - b)
    const edges = Array.from({ length: 9 }, (_, tenth) => all[Math.floor(((tenth + 1) * all.length) / 10)]!)
    const bin = (value: number) => edges.filter(edge => value >= edge).length
    const counts = Array.from({ length: 10 }, () => ({ fresh: 1, known: 1 }))
    for (const { isNew, measures } of samples) counts[bin(measures[measure]!)]![isNew ? 'fresh' : 'known']++
    return (value: number) => Math.log(counts[bin(value)]!.fresh / counts[bin(value)]!.known)
  })
  return of => scores.reduce((sum, score, measure) => sum + score(of[measure]!), 0) > 0
}

describe('what a visitor measures', { skip, timeout: 600_000 }, () => {
  /** Everything that follows a signup. */
  async function settings(t: TestContext, engine: string, hasProvider: boolean): Promise<Record<string, string>> {
    const { url } = await startReceiver(t, () => ({ status: 204 }))
    const mail = await startMailServer(t)
    return {
      DISCLOSE_MEMBERSHIP: 'false',
      WEBHOOK_URL: url,
      WEBHOOK_SECRET: 'whsec_bm90aGluZy1pcy1zZWNyZXQtaW4tdGhpcy10ZXN0',
      SMTP_URL: `smtp://${mail.host}:${mail.port}`,
      MAIL_FROM: 'hello@example.com',
      MAIL_RATE: '6000',
      ...(engine === 'PostgreSQL' && { DATABASE_URL: await server!.database() }),
      ...(hasProvider && { PROVIDER: 'loops', ...loopsSettings((await startReceiver(t, loopsFake().answer)).url) }),
    }
  }

  for (const [engine, hasProvider] of [
    ['SQLite', false],
    ['PostgreSQL', true],
  ] as const) {
    test(`says nothing, with ${engine}, webhook, mail${hasProvider ? ' and provider' : ''}`, async t => {
      const share = async () => told(t, await settings(t, engine, hasProvider))
      const first = await share()
      // By chance one in eighty is off so far, and not the next one too.
      if (first > MOST) assert.ok((await share()) <= MOST)
    })
  }

  test('says it where membership is disclosed and visitors wait for a provider: this test can see it', async t => {
    const { url } = await startReceiver(t, loopsFake().answer)
    assert.ok((await told(t, { PROVIDER: 'loops', ...loopsSettings(url) }, 200)) > 0.65)
  })
})
