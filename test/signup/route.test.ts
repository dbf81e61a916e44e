/** Which requests are taken for signups, and the sentences that refuse the others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BODY_LIMIT } from '../../src/http/limits.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { startService, wholeFile } from '../harness/service.ts'
import { operatorOf } from '../harness/store.ts'

const service = await startService(wholeFile)
const { baseUrl, signUp } = await clientOf(service)

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
  const told = (is: boolean) =>
    answers.filter(
      ({ json: { alreadyExisted, automationTriggered, contactId } }) =>
        alreadyExisted === !is && automationTriggered === is && (contactId !== undefined) === is,
    )
  assert.deepEqual([told(true).length, told(false).length], [1, 99])
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
    'application/json; charset=utf-16; profile="x;y"',
    'application/json;',
  ]
  for (const [i, type] of types.entries()) {
    const headers = { 'content-type': type, 'content-encoding': 'Identity' }
    assert.equal((await signUp({ name: 'Zoë', email: `zoe${i}@example.com` }, headers)).status, 200, type)
    assert.equal((await last()).name, 'Zoë', type)
  }
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
    ...['Host: x', type, 'Expect: 100-continue'],
    `Content-Length: ${length}`,
  ]
  const taken = ['POST /api/waitlist HTTP/1.1', 'Connection: close', ...expecting(signup.length)]
  const answer = await send(baseUrl, taken, signup)
  assert.deepEqual([answer.interim, answer.status], [[100], 200])
  const old = await send(baseUrl, ['POST /api/waitlist HTTP/1.0', ...expecting(signup.length)], signup)
  assert.deepEqual([old.interim, old.status], [[], 200])
  for (const [fields, status] of [
    [expecting(BODY_LIMIT + 1), 413],
    [expecting(signup.length, 'Content-Type: text/plain'), 415],
  ] as const) {
    const refused = await send(baseUrl, ['POST /api/waitlist HTTP/1.1', ...fields])
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

test('C-25, C-55: a body of another type, of none or compressed is refused, and the answer names what is accepted', async () => {
  const refused = async (sentence: string, ...fields: readonly string[]) => {
    const answer = await send(baseUrl, [...post, ...fields, `Content-Length: ${signup.length}`], signup)
    assertRefused(answer, 415, sentence)
    return ['accept', 'accept-post', 'accept-encoding'].map(name => answer.headers.get(name))
  }
  const json = ['application/json', 'application/json', null]
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
    assert.deepEqual(await refused(NOT_JSON, `Content-Type: ${type}`), json, type)
  }
  assert.deepEqual(await refused(NOT_JSON), json)
  for (const coding of ['gzip', 'GZIP', 'identity, gzip', 'x-unknown']) {
    const fields = ['Content-Type: application/json', `Content-Encoding: ${coding}`]
    assert.deepEqual(await refused(ENCODED, ...fields), [null, null, 'identity'], coding)
  }
})
