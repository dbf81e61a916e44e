import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operatorOf } from '../../src/app/database.ts'
import { BODY_LIMIT } from '../../src/http/wire/limits.ts'
import { clientOf } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { startService, wholeFile } from '../harness/service.ts'

const service = await startService(wholeFile)
const { baseUrl, request, signUp } = await clientOf(service)

const contacts = async () => Array.fromAsync(await (await operatorOf(service.config)).contacts())
/** Who was listed last, as it is stored. */
const last = async () => {
  const { id, name, email } = (await contacts()).at(-1)!
  return { id, name, email }
}

test('a new address is listed and its contact id told; a known one is told so, without an id (C-60)', async () => {
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
  assert.deepEqual((await signUp({ name: 'Ada', email: 'ada@example.com' })).json, {
    success: true,
    message: 'You are already on the waitlist.',
    alreadyExisted: true,
    automationTriggered: false,
  })
})

test('C-28: a 200 is application/json, never stored, and varies with Origin', async () => {
  for (const _ of ['new', 'known']) {
    const { headers, text } = await signUp({ name: 'Cyd', email: 'cyd@example.com' })
    assert.equal(headers.get('content-type'), 'application/json')
    assert.equal(headers.get('content-length'), String(Buffer.byteLength(text)))
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('vary'), 'Origin')
    assert.equal(headers.get('etag'), null)
    assert.ok(!text.startsWith('\uFEFF'))
  }
})

test('C-67, C-68, C-74: values are trimmed before they are measured; 100 code points and 255 characters are taken', async () => {
  const [name, email] = ['😀'.repeat(100), '@example.com'.padStart(255, 'a')]
  const answer = await signUp({ name: `${' '.repeat(500)}${name}\n`, email: `\u3000\t${email}\r\n\uFEFF` })
  assert.equal(answer.status, 200)
  assert.deepEqual(await last(), { id: answer.json.contactId, name, email })
})

test('C-75: letter case does not make another contact, a tag or a dot does; the first spelling stays', async () => {
  const spellings = ['ada.l@example.com', 'ADA.L@EXAMPLE.COM', 'ada.l+x@example.com', 'adal@example.com']
  const first = await signUp({ name: 'Ada', email: 'Ada.L@Example.COM' })
  assert.deepEqual(await last(), { id: first.json.contactId, name: 'Ada', email: 'Ada.L@Example.COM' })
  const existed = []
  for (const email of spellings) existed.push((await signUp({ name: 'Ada', email })).json.alreadyExisted)
  assert.deepEqual(existed, [true, true, false, false])
  assert.ok((await contacts()).some(({ email }) => email === 'Ada.L@Example.COM'))
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
    ['a huge number', '{"x":1e999999,"name":"Huge","email":"7@example.com"}', 'Huge'],
    ['escapes', '{"n\\u0061me":"\\u00c9\\ud83d\\ude00","email":"8\\u0040example.com"}', 'É😀'],
    ['an escaped name after the plain one', '{"name":"A","n\\u0061me":"B","email":"9@example.com"}', 'B'],
  ]
  for (const [what, body, name] of bodies) {
    assert.equal((await signUp(body)).status, 200, what)
    assert.equal((await last()).name, name, what)
  }
})

test('C-25, C-27: application/json in any spelling is taken, and is UTF-8 whatever the charset says', async () => {
  const types = [
    'application/json',
    'Application/JSON ; charset="UTF-8"',
    'APPLICATION/JSON',
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

test('C-30: a body of exactly the largest size is taken', async () => {
  const body = JSON.stringify({ name: 'Ada', email: 'ada@example.com' }).padEnd(BODY_LIMIT)
  assert.equal((await signUp(body)).status, 200)
})

const head = ['POST /api/waitlist HTTP/1.1', 'Host: x', 'Content-Type: application/json', 'Connection: close']

test('C-30: a chunked body, cut in the middle of a character, is put together again', async () => {
  const bytes = Buffer.from('{"name":"😀","email":"chunks@example.com"}')
  const chunks = Array.from(bytes, byte => Buffer.from([0x31, 13, 10, byte, 13, 10]))
  const answer = await send(
    baseUrl,
    [...head, 'Transfer-Encoding: chunked'],
    Buffer.concat([...chunks, Buffer.from('0\r\n\r\n')]),
  )
  assert.equal(answer.status, 200)
  assert.equal((await last()).name, '😀')
})

test('C-30: a client that expects 100 is told to go on, and one of HTTP/1.0 is not (RFC 9110 §10.1.1)', async () => {
  const body = '{"name":"Ada","email":"ada@example.com"}'
  const expecting = ['Expect: 100-continue', `Content-Length: ${body.length}`]
  const answer = await send(baseUrl, [...head, ...expecting], body)
  assert.deepEqual([answer.interim, answer.status], [[100], 200])
  const old = await send(baseUrl, ['POST /api/waitlist HTTP/1.0', ...head.slice(1), ...expecting], body)
  assert.deepEqual([old.interim, old.status], [[], 200])
})

test('C-23: a query string changes nothing', async () => {
  const body = '{"name":"Ada","email":"ada@example.com"}'
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  assert.equal((await request('/api/waitlist?email=x&name', init)).status, 200)
})
