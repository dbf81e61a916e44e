/** In which order a request is looked at, and what its refusal says. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { BODY_LIMIT } from '../../src/http/limits.ts'
import type { Store } from '../../src/store/store.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { full, openTestServer, startService } from '../harness/service.ts'

const UNAVAILABLE = 'the waitlist service is temporarily unavailable, please try again'
const ada = { name: 'Ada', email: 'ada@example.com' }

/** A request for a signup: each thing that can be wrong with it has its own place here, so that two can be combined. */
const good = {
  path: '/api/waitlist',
  method: 'POST',
  client: '192.0.2.1',
  coding: 'identity',
  type: 'application/json',
  /** The body is padded to this size. */
  size: 0,
  /** A byte at its end, or none. */
  spoilt: [] as number[],
  /** Text after the JSON value. */
  after: '',
  inArray: false,
  name: 'Ada' as string | undefined,
  email: 'ada@example.com',
}
type Draft = typeof good

const EXHAUSTED = '198.51.100.7'

/** Everything that can be wrong with one request, in the order in which it is looked at. */
const faults: readonly [what: string, fault: Partial<Draft>, status: number, sentence?: string][] = [
  ['an unknown path', { path: '/api/nothing' }, 404, 'there is nothing at this address'],
  ['a method that is not allowed', { method: 'PUT' }, 405],
  ['too many attempts', { client: EXHAUSTED }, 429],
  ['a compressed body', { coding: 'gzip' }, 415, 'the request body must not be compressed'],
  ['a body of another type', { type: 'text/plain' }, 415, 'the Content-Type must be application/json'],
  ['a body that is too large', { size: BODY_LIMIT + 1 }, 413, 'the request body must be at most 16384 bytes'],
  ['a body that is not UTF-8', { spoilt: [0xff] }, 400, 'the request body must be UTF-8 text'],
  ['a body that is no JSON', { after: 'x' }, 400, 'the request body must be valid JSON'],
  ['a body that is no object', { inArray: true }, 400, 'the request body must be a JSON object'],
  ['no name', { name: undefined }, 400, 'name is required'],
  ['a malformed email', { email: 'ada' }, 400, 'email must be a valid email address'],
  ['a store that is full', {}, 500, UNAVAILABLE],
]

function bytesOf({ name, email, inArray, after, size, spoilt }: Draft): Uint8Array<ArrayBuffer> {
  const signup = JSON.stringify({ name, email })
  const text = (inArray ? `[${signup}]` : signup) + after
  return new Uint8Array([...Buffer.from(text.padEnd(size)), ...spoilt])
}

test('of two things that are wrong the earlier one is answered', async t => {
  // The last fault holds for every request: the store never has room.
  const { request } = await clientOf(await openTestServer(t, { TRUST_PROXY: '1', RATE_LIMIT: '1' }, full))
  let clients = 0

  const answerTo = (draft: Draft, isChunked: boolean) => {
    const { path, method, client, coding, type } = draft
    const bytes = bytesOf(draft)
    const headers = { 'content-encoding': coding, 'content-type': type, 'x-forwarded-for': client }
    const body = isChunked ? new Blob([bytes]).stream() : bytes
    return request(path, { method, headers, body, duplex: 'half' } as RequestInit)
  }

  await answerTo({ ...good, client: EXHAUSTED }, false)
  for (const [position, [what, fault, status, sentence]] of faults.entries()) {
    for (const [also, another] of faults.slice(position, position + 2)) {
      for (const isChunked of [false, true]) {
        // A client of its own for each request, so that only those meet the limit that are meant to.
        const client = `10.0.0.${clients++}`
        const answer = await answerTo({ ...good, client, ...another, ...fault }, isChunked)
        assert.equal(answer.status, status, `${what} comes before ${also}: ${answer.text}`)
        assertRefused(answer, status, sentence)
      }
    }
  }
})

test('a blocked domain is refused after name and email and before the challenge, and counts as an attempt', async t => {
  const file = join(temporaryFolder(t), 'blocked.txt')
  writeFileSync(file, '# throw-away\ntrash.example\n!post.trash.example\n')
  const settings = { RATE_LIMIT: '5/10m', CHALLENGE: 'altcha', BLOCKED_DOMAINS_FILE: file }
  const { signUp } = await clientOf(await startService(t, settings))
  const blocked = { name: 'Ada', email: 'ada@Mail.Trash.example' }
  assertRefused(await signUp({ ...blocked, name: '' }), 400, 'name is required')
  assertRefused(await signUp({ ...blocked, email: '@mail.trash.example' }), 400, 'email must be a valid email address')
  assertRefused(await signUp(blocked), 400, 'this email domain is not accepted')
  assertRefused(await signUp({ name: 'Ada', email: 'ada@post.trash.example' }), 400, 'please solve the challenge')
  assert.equal((await signUp(blocked)).status, 400)
  assert.equal((await signUp(blocked)).status, 429)
})

test('C-35…C-38: policy and rest are on every answer that passed the limiter; a 429 says how long to wait', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '5/1h' }))
  const answers = [
    await client.signUp(ada),
    await client.signUp(ada),
    await client.signUp('{}'),
    await client.signUp('{}', { 'content-type': 'text/plain' }),
    await client.signUp(' '.repeat(20_000)),
    await client.signUp(ada),
  ]
  // draft-ietf-httpapi-ratelimit-headers-11, read as Structured Fields (RFC 9651 §3.1, §3.3).
  const rests = answers.map(({ status, headers }) => {
    assert.equal(headers.get('ratelimit-policy'), '"signup";q=5;w=3600')
    const [, rest, seconds] = /^"signup";r=(\d+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
    assert.ok(Number(seconds) >= 1 && Number(seconds) <= 720, 'one attempt comes back every 720 seconds')
    return [status, Number(rest)]
  })
  assert.deepEqual(rests, [
    [200, 4],
    [200, 3],
    [400, 2],
    [415, 1],
    [413, 0],
    [429, 0],
  ])
  const refused = answers.at(-1)!
  const seconds = refused.headers.get('retry-after')
  assert.match(refused.headers.get('ratelimit')!, new RegExp(`t=${seconds}$`))
  assertRefused(refused, 429, `too many signup attempts, please try again in ${seconds} seconds`)

  // C-16, C-38: nothing but POST counts, or tells the quota.
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT']) {
    const { status, headers } = await client.request('/api/waitlist', { method })
    assert.deepEqual([status === 429, headers.get('ratelimit')], [false, null], method)
  }
})

test('C-35: a wait shorter than a second is told as 1 second', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '4/2s' }))
  let answer = await client.signUp('{}')
  for (let n = 1; answer.status !== 429 && n < 100; n++) answer = await client.signUp('{}')
  assertRefused(answer, 429, 'too many signup attempts, please try again in 1 second')
  assert.equal(answer.headers.get('retry-after'), '1')
})

for (const [what, change, line] of [
  ['a disk without room', full, { msg: 'signups are refused', refused: 1 }],
  [
    'an exception that nobody expected',
    (store: Store) => ({ ...store, admit: () => Promise.reject(new TypeError('secret: /etc/waitlist.key')) }),
    { msg: 'a bug: a request failed', requests: 1 },
  ],
] as const) {
  test(`C-19, C-20, C-51: ${what} is a 500 with nothing internal, and one line of the log for all`, async t => {
    const origin = 'https://landing.example.com'
    const server = await openTestServer(t, { CORS_ORIGINS: origin }, change)
    const client = await clientOf(server)
    for (let i = 0; i < 5; i++) {
      const answer = await client.signUp(ada, { origin })
      assertRefused(answer, 500, UNAVAILABLE)
      assert.equal(answer.headers.get('retry-after'), null, 'C-20: a 500 has no Retry-After')
      assert.equal(answer.headers.get('access-control-allow-origin'), origin)
      assert.equal(answer.headers.get('vary'), 'Origin')
      assert.match(answer.headers.get('ratelimit') ?? '', /^"signup";r=\d+;t=\d+$/)
    }
    const lines = server.logged.filter(({ level }) => level === 50)
    assert.equal(lines.length, 1)
    assert.deepEqual({ ...lines[0], ...line }, lines[0])
    assert.doesNotMatch(JSON.stringify(server.logged), /ada@/)
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
