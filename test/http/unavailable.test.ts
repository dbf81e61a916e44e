import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { unavailable } from '../../src/http/errors.ts'
import type { Signup } from '../../src/signup/contact.ts'
import { batches, storeBounds } from '../../src/store/batches.ts'
import type { Admission } from '../../src/store/signups.ts'
import type { Store } from '../../src/store/store.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { openLoop } from '../harness/open-loop.ts'
import { full, openTestServer } from '../harness/server.ts'

const origin = 'https://landing.example.com'
const env = { CORS_ORIGINS: origin }
const signup = (n: number) => ({ name: 'Ada', email: `ada${n}@example.com` })

/** What a 500 may show: one sentence, the fields of every answer to POST, nothing of what is behind. */
function assertUnavailable(answer: Answer): void {
  assertRefused(answer, 500, unavailable.error)
  assert.doesNotMatch(answer.text, /sqlite|database|disk|\/|stack|error:|at /i)
  assert.equal(answer.headers.get('retry-after'), null, 'C-20: a 500 has no Retry-After')
  assert.equal(answer.headers.get('access-control-allow-origin'), origin)
  assert.equal(answer.headers.get('access-control-allow-credentials'), 'true')
  assert.match(answer.headers.get('access-control-expose-headers') ?? '', /Retry-After/)
  assert.equal(answer.headers.get('vary'), 'Origin')
  assert.match(answer.headers.get('ratelimit') ?? '', /^"signup";r=\d+;t=\d+$/)
  assert.match(answer.headers.get('ratelimit-policy') ?? '', /^"signup";q=\d+;w=\d+$/)
}

test('C-20, C-51: a disk without room answers 500, with nothing internal and with all fields', async t => {
  const server = await openTestServer(t, env, full)
  const client = await clientOf(server)
  for (let n = 0; n < 5; n++) assertUnavailable(await client.signUp(signup(n), { origin }))
  const lines = server.logged.filter(({ level }) => level === 50)
  assert.deepEqual(
    lines.map(({ msg, refused }) => [msg, refused]),
    [['signups are refused', 1]],
    'an outage that refuses everybody is one line, not one for each of them',
  )
})

test('C-19: exceptions that nobody expected are a 500 that shows nothing of them, and one line of the log', async t => {
  const server = await openTestServer(t, env, store => ({
    ...store,
    admit: () => Promise.reject(new TypeError('secret: /etc/waitlist.key')),
  }))
  const client = await clientOf(server)
  for (let n = 0; n < 5; n++) {
    const answer = await client.signUp(signup(n), { origin })
    assertUnavailable(answer)
    assert.ok(!answer.text.includes('secret'))
  }
  const lines = server.logged.filter(({ err }) => err !== undefined)
  assert.deepEqual(
    lines.map(({ level, reqId, requests }) => [level, typeof reqId, requests]),
    [[50, 'string', 1]],
    'of level error, with the id of the request',
  )
})

test('C-20: a signup that failed may be sent again, and is then new', async t => {
  let outage = true
  const server = await openTestServer(t, env, store => ({
    ...store,
    admit: signup => (outage ? Promise.reject(new Error('gone')) : store.admit(signup)),
  }))
  const client = await clientOf(server)
  assertUnavailable(await client.signUp(signup(1), { origin }))
  outage = false
  assert.equal((await client.signUp(signup(1))).json.alreadyExisted, false)
})

/** A server whose store is behind when the test says so. */
async function overloadable(t: TestContext, env: Record<string, string> = {}) {
  const state = { behind: false }
  const server = await openTestServer(t, env, store => ({ ...store, isBehind: () => state.behind }))
  return { server, state, client: await clientOf(server) }
}

test('C-62: a signup is refused with 500 while the store is behind; health and documents are not', async t => {
  const { server, state, client } = await overloadable(t)
  state.behind = true
  const refused = await client.signUp({ name: 'Ada', email: 'ada@example.com' })
  assert.deepEqual([refused.status, refused.json], [500, { error: unavailable.error }])
  for (const path of ['/api/health', '/api/waitlist', '/docs/api']) {
    assert.equal((await client.request(path)).status, 200, path)
  }
  state.behind = false
  const admitted = await client.signUp({ name: 'Ada', email: 'ada@example.com' })
  assert.deepEqual([admitted.status, admitted.json.alreadyExisted], [200, false], 'nothing was stored before')
  const lines = server.logged.filter(({ level }) => level === 50)
  assert.deepEqual(
    lines.map(({ msg, reason, refused }) => ({ msg, reason, refused })),
    [{ msg: 'signups are refused', reason: 'more signups arrive than can be stored in time', refused: 1 }],
  )
})

test('it is refused before it counts as an attempt, and before its body is looked at', async t => {
  const { state, client } = await overloadable(t, { RATE_LIMIT: '1' })
  state.behind = true
  for (let i = 0; i < 3; i++) assert.equal((await client.signUp('no JSON')).status, 500)
  state.behind = false
  assert.equal((await client.signUp({ name: 'Ada', email: 'ada@example.com' })).status, 200)
  assert.equal((await client.signUp({ name: 'Ada', email: 'ada@example.com' })).status, 429)
})

test('the connection stays', async t => {
  const { server, state } = await overloadable(t)
  state.behind = true
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  for (let times = 0; times < 3; times++) {
    const headers = { 'content-type': 'application/json' }
    const asked = request(`${server.baseUrl}/api/waitlist`, { agent, method: 'POST', headers })
    const [response] = await once(asked.end('{"name":"Ada","email":"ada@example.com"}'), 'response')
    assert.deepEqual([response.statusCode, asked.reusedSocket], [500, times > 0])
    await once(response.resume(), 'end')
  }
})

/** A store that commits at most `batch` signups each 40 ms. */
function slowed(store: Store, batch: number): Store {
  const { submit, isBehind } = batches<Signup, Admission>(
    async signups => {
      await wait(40)
      return Promise.all(signups.map(store.admit))
    },
    { ...storeBounds, batch, parallel: 1 },
  )
  return { ...store, admit: submit, isBehind }
}

test('at many times what the store can take, each is answered with 200 or 500; afterwards all with 200', async t => {
  // 8 in 40 ms: 200 a second, far less than even a busy machine sends.
  const { baseUrl } = await openTestServer(t, {}, store => slowed(store, 8))
  const load = { baseUrl, connections: 500, addresses: 64 }
  const [during] = await openLoop({ ...load, stages: [{ rate: 2_400, seconds: 1 }] })
  assert.deepEqual([Object.keys(during!.answers), during!.lost], [['200', '500'], 0])
  let answers: string[]
  do {
    const [after] = await openLoop({ ...load, stages: [{ rate: 50, seconds: 0.5 }] })
    assert.equal(after!.lost, 0)
    answers = Object.keys(after!.answers)
  } while (answers.includes('500'))
  assert.deepEqual(answers, ['200'])
})
