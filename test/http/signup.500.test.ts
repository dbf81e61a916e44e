import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unavailable } from '../../src/http/wire/refusals.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { openTestServer } from '../harness/server.ts'

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
  const server = await openTestServer(t, { minimumFree: Number.MAX_SAFE_INTEGER }, env)
  const client = await clientOf(server)
  for (let n = 0; n < 5; n++) assertUnavailable(await client.signUp(signup(n), { origin }))
  const lines = server.logged.filter(({ level }) => level === 50)
  assert.deepEqual(
    lines.map(({ msg, refused }) => [msg, refused]),
    [['signups are refused', 1]],
    'an outage that refuses everybody is one line, not one for each of them',
  )
})

test('C-20: a database that is full answers 500 for what is new, and the service stays up', async t => {
  const server = await openTestServer(t, { maxPages: 24 }, env)
  const client = await clientOf(server)
  let answer = await client.signUp(signup(0), { origin })
  for (let n = 1; answer.status === 200 && n < 5_000; n++) answer = await client.signUp(signup(n), { origin })
  assertUnavailable(answer)
  assert.equal((await client.request('/api/waitlist')).status, 200)
  const known = await client.signUp(signup(0), { origin })
  assert.equal(known.json.alreadyExisted, true, 'who was acknowledged is still on the list')
})

test('C-19: exceptions that nobody expected are a 500 that shows nothing of them, and one line of the log', async t => {
  const server = await openTestServer(t, {}, env, store => ({
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
  const server = await openTestServer(t, {}, env, store => ({
    ...store,
    admit: signup => (outage ? Promise.reject(new Error('gone')) : store.admit(signup)),
  }))
  const client = await clientOf(server)
  assertUnavailable(await client.signUp(signup(1), { origin }))
  outage = false
  assert.equal((await client.signUp(signup(1))).json.alreadyExisted, false)
})
