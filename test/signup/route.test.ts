/** What is sent to be signed up: what is taken, what is refused, and in which order it is looked at. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { BODY_LIMIT } from '../../src/http/limits.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { readAnswer, send } from '../harness/raw.ts'
import { full, openTestServer, startService, wholeFile } from '../harness/service.ts'
import { operatorOf } from '../harness/store.ts'

const service = await startService(wholeFile)
const { baseUrl, request, signUp } = await clientOf(service)

const contacts = async () => Array.fromAsync(operatorOf(service.config).contacts({}))
/** Who was listed last, as it is stored. */
const last = async () => {
  const { id, name, email } = (await contacts()).at(-1)!
  return { id, name, email }
}

const signup = '{"name":"Ada","email":"ada@example.com"}'
const post = ['POST /api/waitlist HTTP/1.1', 'Host: x', 'Connection: close']
const json = 'Content-Type: application/json'
const chunked = 'Transfer-Encoding: chunked'

test('a new address is listed and its contact id told; a known one is told so, without an id (C-60, C-75)', async () => {
  const { status, json } = await signUp({ name: 'Ada Lovelace', email: 'ada@example.com' })
  assert.equal(status, 200)
  const { contactId, ...rest } = json
  assert.match(contactId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(rest, {
    success: true,
    message: 'You are on the waitlist.',
    alreadyExisted: false,
    automationTriggered: true,
  })
  assert.deepEqual(await last(), { id: contactId, name: 'Ada Lovelace', email: 'ada@example.com' })
  assert.deepEqual((await signUp({ name: 'Ada', email: 'ADA@example.com' })).json, {
    success: true,
    message: 'You are already on the waitlist.',
    alreadyExisted: true,
    automationTriggered: false,
  })
})

test('C-65: of many simultaneous signups of one address exactly one is new', async () => {
  const crowd = Array.from({ length: 100 }, (_, i) => signUp({ name: `Bob ${i}`, email: 'bob@example.com' }))
  const answers = await Promise.all(crowd)
  assert.ok(answers.every(({ status }) => status === 200))
  assert.equal(answers.filter(({ json }) => json.alreadyExisted === false).length, 1)
  assert.equal(answers.filter(({ json }) => json.automationTriggered === true).length, 1)
  assert.equal(answers.filter(({ json }) => 'contactId' in json).length, 1)
  assert.equal((await contacts()).filter(({ email }) => email === 'bob@example.com').length, 1)
})

test('C-29: bodies that are unusual and legal are taken', async () => {
  const deep = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
  const bodies: [what: string, body: string, name: string][] = [
    ['a byte order mark', '\uFEFF{"name":"Mark","email":"1@example.com"}', 'Mark'],
    ['white space around it', ' \r\n\t{"name":"Space","email":"2@example.com"}\n ', 'Space'],
    ['a name twice', '{"name":"First","email":"x","name":"Last","email":"3@example.com"}', 'Last'],
    ['unknown members', '{"name":"More","email":"4@example.com","id":7,"state":"x","success":false}', 'More'],
    ['__proto__ beside good values', '{"__proto__":{"name":"Evil"},"name":"Good","email":"5@example.com"}', 'Good'],
    ['deep nesting beside good values', `{"x":${deep},"name":"Deep","email":"6@example.com"}`, 'Deep'],
    ['escapes', '{"n\\u0061me":"\\u00c9\\ud83d\\ude00","email":"8\\u0040example.com"}', 'É😀'],
    ['the largest size', '{"name":"Large","email":"9@example.com"}'.padEnd(BODY_LIMIT), 'Large'],
  ]
  for (const [what, body, name] of bodies) {
    assert.equal((await signUp(body)).status, 200, what)
    assert.equal((await last()).name, name, what)
  }
})

test('C-25, C-27: application/json in any spelling is taken, and is UTF-8 whatever the charset says', async () => {
  const types = [
    'Application/JSON ; charset="UTF-8"',
    'application/json;charset=iso-8859-1',
    'application/json; charset=utf-16; profile="x;y"',
    'application/json;',
  ]
  for (const [i, type] of types.entries()) {
    const { status } = await signUp({ name: 'Zoë', email: `zoe${i}@example.com` }, { 'content-type': type })
    assert.equal(status, 200, type)
    assert.equal((await last()).name, 'Zoë', type)
  }
  const identity = await signUp({ name: 'A', email: 'a@example.com' }, { 'content-encoding': 'Identity' })
  assert.equal(identity.status, 200)
})

test('C-30: a chunked body, cut in the middle of a character, is put together again', async () => {
  const bytes = Buffer.from('{"name":"😀","email":"chunks@example.com"}')
  const chunks = Array.from(bytes, byte => Buffer.from([0x31, 13, 10, byte, 13, 10]))
  const body = Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')])
  assert.equal((await send(baseUrl, [...post, json, chunked], body)).status, 200)
  assert.equal((await last()).name, '😀')
})

test('C-30: who expects 100 is told to go on, but for HTTP/1.0 (RFC 9110 §10.1.1), and hears a refusal at once', async () => {
  const expecting = (length: number, type = json) => [
    ...post,
    type,
    'Expect: 100-continue',
    `Content-Length: ${length}`,
  ]
  const answer = await send(baseUrl, expecting(signup.length), signup)
  assert.deepEqual([answer.interim, answer.status], [[100], 200])
  const [, ...fields] = expecting(signup.length)
  const old = await send(baseUrl, ['POST /api/waitlist HTTP/1.0', ...fields], signup)
  assert.deepEqual([old.interim, old.status], [[], 200])
  for (const [head, status] of [
    [expecting(BODY_LIMIT + 1), 413],
    [expecting(99_999_999_999), 413],
    [expecting(signup.length, 'Content-Type: text/plain'), 415],
  ] as const) {
    const refused = await send(
      baseUrl,
      head.filter(line => line !== 'Connection: close'),
    )
    assertRefused(refused, status)
    assert.deepEqual([refused.interim, refused.headers.get('connection')], [[], 'close'])
  }
})

test('C-30, C-61: a chunked body is refused while it streams, before its end', async () => {
  const size = BODY_LIMIT + 1
  const answer = await send(baseUrl, [...post, json, chunked], `${size.toString(16)}\r\n${signup.padEnd(size)}`)
  assertRefused(answer, 413, 'the request body must be at most 16384 bytes')
  assert.equal(answer.headers.get('connection'), 'close')
})

/** Recognisable in an answer, so that an echo shows. */
const ECHO = 'zqxj'
const email = `${ECHO}@example.com`
const EMPTY = 'a JSON body with name and email is required'
const MALFORMED = 'the request body must be valid JSON'
const NOT_UTF8 = 'the request body must be UTF-8 text'
const NO_OBJECT = 'the request body must be a JSON object'
const NOT_JSON = 'the Content-Type must be application/json'
const ENCODED = 'the request body must not be compressed'
const nameRequired = 'name is required'
const lineBreak = `{"name":"${ECHO}\\r\\nBcc: x","email":"${email}"}`

// What a name and an address must be is in test/signup/parse.test.ts.
const rows: readonly [item: string, what: string, body: string | Buffer, sentence: string][] = [
  ['C-26', 'nothing at all', '', EMPTY],
  ['C-29', 'white space only', ' \n ', MALFORMED],
  ['C-29', 'text that is no JSON', ECHO, MALFORMED],
  ['C-29', 'JSON that ends early', `{"name":"${ECHO}"`, MALFORMED],
  ['C-29', 'JSON with something after it', `{"name":"${ECHO}","email":"${email}"}x`, MALFORMED],
  ['C-27', 'bytes that are not UTF-8', Buffer.from('{"name":"\xE9","email":"a@b.co"}', 'latin1'), NOT_UTF8],
  ['C-27', 'an overlong byte sequence', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), NOT_UTF8],
  ['C-29', 'null', 'null', NO_OBJECT],
  ['C-29', 'a signup in an array', `[{"name":"${ECHO}","email":"${email}"}]`, NO_OBJECT],
  ['C-29', 'a string', `"${ECHO}"`, NO_OBJECT],
  ['C-29', 'a number beyond all bounds', `1${'0'.repeat(10_000)}`, NO_OBJECT],
  ['C-29', 'arrays 8,000 deep', '['.repeat(8_000) + ']'.repeat(8_000), NO_OBJECT],
  ['C-29', 'objects 2,500 deep', `${'{"a":'.repeat(2_500)}1${'}'.repeat(2_500)}`, nameRequired],
  ['C-29', 'values in __proto__', `{"__proto__":{"name":"${ECHO}","email":"${email}"}}`, nameRequired],
  ['C-71', 'a line break in the name', lineBreak, 'name must not contain control characters'],
  ['C-71', 'no email', `{"name":"${ECHO}"}`, 'email is required'],
  ['C-71', 'neither', `{"x":"${ECHO}"}`, nameRequired],
]

test('C-19, C-64: every body that is no signup is refused in its own words, which repeat nothing of it', async t => {
  const service = await startService(t)
  const { request } = await clientOf(service)
  const headers = { 'content-type': 'application/json', origin: 'https://elsewhere.example' }
  for (const [item, what, body, sentence] of rows) {
    const bytes = new Uint8Array(Buffer.from(body))
    const answer = await request('/api/waitlist', { method: 'POST', headers, body: bytes })
    assert.equal(answer.text, JSON.stringify({ error: sentence }), `${item}: ${what}`)
    assertRefused(answer, 400)
    for (const [name, value] of answer.headers) assert.ok(!value.includes(ECHO), `no echo in ${name}`)
    assert.equal(answer.headers.get('vary'), 'Origin')
  }
  const contacts = operatorOf(service.config).contacts({})
  assert.deepEqual(await Array.fromAsync(contacts), [], 'and nothing is stored')
  assert.ok(!JSON.stringify(service.logged).includes(ECHO), 'nor logged')
})

test('C-26: an empty body is a 400 whatever its type, however its length is told', async () => {
  for (const type of [json, 'Content-Type: text/plain', 'X-No: type', 'Content-Encoding: gzip']) {
    for (const [length, body] of [
      ['X-No: length', ''],
      ['Content-Length: 00', ''],
      [chunked, '0\r\n\r\n'],
    ] as const) {
      assertRefused(await send(baseUrl, [...post, type, length], body), 400, EMPTY)
    }
  }
})

test('C-25, C-55: a body of another type, or of none, is refused and told what would be accepted', async () => {
  const forms = ['text/plain;charset=UTF-8', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']
  const nearly = [
    'text/json',
    'application/ld+json',
    'application/*',
    'application / json',
    'application/json, a/b',
    '',
  ]
  for (const type of [...forms, ...nearly]) {
    const answer = await send(baseUrl, [...post, `Content-Type: ${type}`, `Content-Length: ${signup.length}`], signup)
    assertRefused(answer, 415, NOT_JSON)
    assert.equal(answer.headers.get('accept'), 'application/json', type)
    assert.equal(answer.headers.get('accept-post'), 'application/json', type)
  }
  const body = `${signup.length.toString(16)}\r\n${signup}\r\n0\r\n\r\n`
  assertRefused(await send(baseUrl, [...post, chunked], body), 415, NOT_JSON)
})

test('C-25: a compressed body is refused and told that only identity is accepted', async () => {
  for (const coding of ['gzip', 'GZIP', 'identity, gzip', 'x-unknown']) {
    const headers = { 'content-type': 'application/json', 'content-encoding': coding }
    const answer = await request('/api/waitlist', { method: 'POST', headers, body: new Uint8Array(gzipSync(signup)) })
    assertRefused(answer, 415, ENCODED)
    assert.equal(answer.headers.get('accept-encoding'), 'identity', coding)
    assert.equal(answer.headers.get('accept'), null, coding)
  }
})

test('C-25: a refused body does not spoil the next request of the same connection', async () => {
  const [line, host, close] = post
  const length = `Content-Length: ${signup.length}`
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname).setEncoding('latin1')
  socket.write([line, host, 'Content-Type: text/plain', length, '', signup].join('\r\n'))
  const [first] = await once(socket, 'data')
  socket.write([line, host, close, json, length, '', signup].join('\r\n'))
  const answers = [readAnswer(first), readAnswer(await text(socket))]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [415, 200],
  )
})

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
  ['a compressed body', { coding: 'gzip' }, 415, ENCODED],
  ['a body of another type', { type: 'text/plain' }, 415, NOT_JSON],
  ['a body that is too large', { size: BODY_LIMIT + 1 }, 413, 'the request body must be at most 16384 bytes'],
  ['a body that is not UTF-8', { spoilt: [0xff] }, 400, NOT_UTF8],
  ['a body that is no JSON', { after: 'x' }, 400, MALFORMED],
  ['a body that is no object', { inArray: true }, 400, NO_OBJECT],
  ['no name', { name: undefined }, 400, nameRequired],
  ['a malformed email', { email: 'ada' }, 400, 'email must be a valid email address'],
  ['a store that is full', {}, 500, 'the waitlist service is temporarily unavailable, please try again'],
]

function bytesOf({ name, email, inArray, after, size, spoilt }: Draft): Uint8Array<ArrayBuffer> {
  const signup = JSON.stringify({ name, email })
  const text = (inArray ? `[${signup}]` : signup) + after
  return new Uint8Array([...Buffer.from(text.padEnd(size)), ...spoilt])
}

for (const transfer of ['by Content-Length', 'chunked'] as const) {
  test(`of two things that are wrong the earlier one is answered, ${transfer}`, async t => {
    // The last fault holds for every request: the store never has room.
    const env = { TRUST_PROXY: '1', RATE_LIMIT: '1' }
    const { request } = await clientOf(await openTestServer(t, env, full))
    let clients = 0

    const answerTo = (draft: Draft) => {
      const { path, method, client, coding, type } = draft
      const bytes = bytesOf(draft)
      const body = transfer === 'chunked' ? new Blob([bytes]).stream() : bytes
      const headers = { 'content-encoding': coding, 'content-type': type, 'x-forwarded-for': client }
      return request(path, { method, headers, body, duplex: 'half' } as RequestInit)
    }

    await answerTo({ ...good, client: EXHAUSTED })
    for (const [position, [what, fault, status, sentence]] of faults.entries()) {
      for (const [also, another] of faults.slice(position, position + 2)) {
        // A client of its own for each request, so that only those meet the limit that are meant to.
        const client = `10.0.${clients >> 8}.${clients++ & 255}`
        const answer = await answerTo({ ...good, client, ...another, ...fault })
        assert.equal(answer.status, status, `${what} comes before ${also}: ${answer.text}`)
        assertRefused(answer, status, sentence)
      }
    }
  })
}

test('a blocked domain is refused after name and email and before the challenge, and counts as an attempt', async t => {
  const file = join(temporaryFolder(t), 'blocked.txt')
  writeFileSync(file, '# throw-away\ntrash.example\n!post.trash.example\n')
  const settings = { RATE_LIMIT: '5/10m', CHALLENGE: 'altcha', BLOCKED_DOMAINS_FILE: file }
  const { signUp } = await clientOf(await startService(t, settings))
  const blocked = { name: 'Ada', email: 'ada@Mail.Trash.example' }
  assertRefused(await signUp({ ...blocked, name: '' }), 400, nameRequired)
  assertRefused(await signUp({ ...blocked, email: '@mail.trash.example' }), 400, 'email must be a valid email address')
  assertRefused(await signUp(blocked), 400, 'this email domain is not accepted')
  assertRefused(await signUp({ name: 'Ada', email: 'ada@post.trash.example' }), 400, 'please solve the challenge')
  assert.equal((await signUp(blocked)).status, 400)
  assert.equal((await signUp(blocked)).status, 429)
})

test('C-35…C-38: policy and rest are on every answer that passed the limiter; a 429 says how long to wait', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '5/1h' }))
  const answers = [
    await client.signUp({ name: 'Ada', email: 'ada@example.com' }),
    await client.signUp({ name: 'Ada', email: 'ada@example.com' }),
    await client.signUp('{}'),
    await client.signUp('{}', { 'content-type': 'text/plain' }),
    await client.signUp(' '.repeat(20_000)),
    await client.signUp(signup),
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

test('C-35: waiting as long as Retry-After says is enough; a wait shorter than a second is told as 1', async t => {
  const client = await clientOf(await startService(t, { RATE_LIMIT: '4/2s' }))
  let answer = await client.signUp('{}')
  for (let n = 1; answer.status !== 429 && n < 100; n++) answer = await client.signUp('{}')
  assertRefused(answer, 429, 'too many signup attempts, please try again in 1 second')
  assert.equal(answer.headers.get('retry-after'), '1')
  await setTimeout(1_000)
  assert.equal((await client.signUp(signup)).status, 200)
})
