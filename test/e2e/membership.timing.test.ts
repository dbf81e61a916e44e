/** `DISCLOSE_MEMBERSHIP=false`: the time of an answer does not tell whether the address was on the list before. */
import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { after, describe, type TestContext, test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres } from '../harness/postgres.ts'
import { runProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { startVendor } from '../harness/vendor.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

/** Interleaved signups of each kind. */
const PAIRS = 2_000
/** Who sign up at once. */
const VISITORS = 4
/**
 * How far from a half the probability may be that a new address took longer than a known one. By chance alone it is off by
 * 0.009 (one standard deviation for so many pairs): what is told apart in less than one pair of 25 is not seen.
 */
const TOLERANCE = 0.04

const skip = !isSlow && 'thousands of signups; it runs in .ci/run'
const server = isSlow ? await startPostgres() : null
after(() => server?.remove())

async function signUp(agent: Agent, url: string, email: string): Promise<number> {
  const body = JSON.stringify({ name: 'Visitor', email })
  const began = process.hrtime.bigint()
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    request(`${url}/api/waitlist`, { agent, method: 'POST', headers }, response => {
      const took = Number(process.hrtime.bigint() - began)
      response
        .resume()
        .on('end', () => (response.statusCode === 200 ? resolve(took) : reject(new Error(`${response.statusCode}`))))
    })
      .on('error', reject)
      .end(body)
  })
}

/** The probability that a new address takes longer than a known one (Mann and Whitney's U, as a fraction). */
async function told(t: TestContext, env: Record<string, string>, pairs = PAIRS): Promise<number> {
  const program = await runProgram(t, { PORT: '0', RATE_LIMIT: '1000000', ...env }, { cwd: temporaryFolder(t) })
  const agent = new Agent({ keepAlive: true, maxSockets: VISITORS })
  t.after(() => agent.destroy())
  const known = 'known@example.com'
  for (let i = 0; i < 50; i++) await signUp(agent, program.baseUrl, known)
  const times: { readonly isNew: boolean; readonly took: number }[] = []
  let left = pairs
  const visitor = async () => {
    while (left-- > 0) {
      // Which of them is first is left to chance.
      const kinds = Math.random() < 0.5 ? [true, false] : [false, true]
      const fresh = `visitor-${left}@example.com`
      for (const isNew of kinds)
        times.push({ isNew, took: await signUp(agent, program.baseUrl, isNew ? fresh : known) })
    }
  }
  await Promise.all(Array.from({ length: VISITORS }, visitor))
  times.sort((one, other) => one.took - other.took)
  let ranks = 0
  for (const [i, { isNew }] of times.entries()) if (isNew) ranks += i + 1
  const probability = (ranks - (pairs * (pairs + 1)) / 2) / pairs ** 2
  t.diagnostic(`a new address took longer in ${(100 * probability).toFixed(1)} % of ${pairs ** 2} pairs`)
  return probability
}

describe('the time of an answer', { skip, timeout: 600_000 }, () => {
  for (const engine of ['SQLite', 'PostgreSQL']) {
    for (const provider of [false, true]) {
      test(`says nothing, with ${engine}, ${provider ? 'with' : 'without'} a provider`, async t => {
        const measured = async () => {
          const env: Record<string, string> = { DISCLOSE_MEMBERSHIP: 'false' }
          if (engine === 'PostgreSQL') env.DATABASE_URL = await server!.database()
          if (provider)
            Object.assign(env, { PROVIDER: 'loops' }, loopsSettings((await startVendor(t, loopsFake().answer)).url))
          return told(t, env)
        }
        const isEven = (probability: number) => Math.abs(probability - 0.5) < TOLERANCE
        const first = await measured()
        // By chance one in some ten thousand is off so far, and not the next one too.
        if (!isEven(first)) assert.ok(isEven(await measured()), String(first))
      })
    }
  }

  test('says it where membership is disclosed and visitors wait for a provider: this test can see it', async t => {
    const { url } = await startVendor(t, loopsFake().answer)
    assert.ok((await told(t, { PROVIDER: 'loops', ...loopsSettings(url) }, 50)) > 0.9)
  })
})
