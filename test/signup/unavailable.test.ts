/** What is answered when a signup cannot be stored. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Signup } from '../../src/signup/contact.ts'
import { batches, storeBounds } from '../../src/store/batches.ts'
import type { Admission } from '../../src/store/signups.ts'
import type { Store } from '../../src/store/store.ts'
import { type Answer, assertRefused, clientOf } from '../harness/client.ts'
import { openLoop } from '../harness/crowd.ts'
import { full, openTestServer } from '../harness/service.ts'

const UNAVAILABLE = 'the waitlist service is temporarily unavailable, please try again'
const origin = 'https://landing.example.com'
const env = { CORS_ORIGINS: origin }
const ada = { name: 'Ada', email: 'ada@example.com' }

/** What a 500 may show: one sentence, the headers of every answer to POST, nothing of what is behind. */
function assertUnavailable(answer: Answer): void {
  assertRefused(answer, 500, UNAVAILABLE)
  assert.equal(answer.headers.get('retry-after'), null, 'C-20: a 500 has no Retry-After')
  assert.equal(answer.headers.get('access-control-allow-origin'), origin)
  assert.equal(answer.headers.get('vary'), 'Origin')
  assert.match(answer.headers.get('ratelimit') ?? '', /^"signup";r=\d+;t=\d+$/)
  assert.match(answer.headers.get('ratelimit-policy') ?? '', /^"signup";q=\d+;w=\d+$/)
}

for (const [what, change, line] of [
  ['a disk without room', full, { msg: 'signups are refused', refused: 1 }],
  [
    'an exception that nobody expected',
    (store: Store) => ({ ...store, admit: () => Promise.reject(new TypeError('secret: /etc/waitlist.key')) }),
    { msg: 'a bug: a request failed', requests: 1 },
  ],
] as const) {
  test(`C-19, C-20, C-51: ${what} is a 500 with nothing internal, and one line of the log for all`, async t => {
    const server = await openTestServer(t, env, change)
    const client = await clientOf(server)
    for (let i = 0; i < 5; i++) assertUnavailable(await client.signUp(ada, { origin }))
    const lines = server.logged.filter(({ level }) => level === 50)
    assert.equal(lines.length, 1)
    assert.deepEqual({ ...lines[0], ...line }, lines[0])
  })
}

test('C-62: while the store is behind a signup is refused, without counting or being read; all else is answered', async t => {
  let isBehind = false
  const server = await openTestServer(t, { RATE_LIMIT: '1/10m' }, store => ({ ...store, isBehind: () => isBehind }))
  const client = await clientOf(server)
  isBehind = true
  for (let i = 0; i < 3; i++) assertRefused(await client.signUp('no JSON'), 500, UNAVAILABLE)
  for (const path of ['/api/health', '/api/waitlist', '/docs/api']) {
    assert.equal((await client.request(path)).status, 200, path)
  }
  isBehind = false
  assert.equal((await client.signUp(ada)).json.alreadyExisted, false)
  assert.equal((await client.signUp(ada)).status, 429)
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
  const load = { connections: 500, addresses: 64 }
  const during = await openLoop(baseUrl, { ...load, rate: 2_400, seconds: 1 })
  assert.deepEqual([Object.keys(during.answers), during.lost], [['200', '500'], 0])
  let answers: string[]
  do {
    const after = await openLoop(baseUrl, { ...load, rate: 50, seconds: 0.5 })
    assert.equal(after.lost, 0)
    answers = Object.keys(after.answers)
  } while (answers.includes('500'))
  assert.deepEqual(answers, ['200'])
})
