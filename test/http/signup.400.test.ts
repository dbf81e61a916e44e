import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operatorOf } from '../../src/app/database.ts'
import * as refusals from '../../src/http/wire/refusals.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { send } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'

const nameRequired = 'name is required'
const emailRequired = 'email is required'
const emailInvalid = 'email must be a valid email address'
const control = 'name must not contain control characters'

/** Recognisable in an answer, so that an echo shows. */
const ECHO = 'zqxj'
const email = `${ECHO}@example.com`

const rows: readonly [item: string, what: string, body: string | Buffer, sentence: string][] = [
  // The body as such.
  ['C-26', 'nothing at all', '', refusals.emptyBody.error],
  ['C-29', 'white space only', ' \n ', refusals.malformedJson.error],
  ['C-29', 'text that is no JSON', ECHO, refusals.malformedJson.error],
  ['C-29', 'JSON that ends early', `{"name":"${ECHO}"`, refusals.malformedJson.error],
  ['C-29', 'JSON with something after it', `{"name":"${ECHO}","email":"${email}"}x`, refusals.malformedJson.error],
  ['C-29', 'a raw line feed in a string', `{"name":"${ECHO}\n","email":"${email}"}`, refusals.malformedJson.error],
  [
    'C-27',
    'bytes that are not UTF-8',
    Buffer.from('{"name":"\xE9","email":"a@b.co"}', 'latin1'),
    refusals.notUtf8.error,
  ],
  ['C-27', 'an overlong byte sequence', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), refusals.notUtf8.error],
  ['C-29', 'null', 'null', refusals.notAnObject.error],
  ['C-29', 'a signup in an array', `[{"name":"${ECHO}","email":"${email}"}]`, refusals.notAnObject.error],
  ['C-29', 'a string', `"${ECHO}"`, refusals.notAnObject.error],
  ['C-29', 'a number beyond all bounds', `1${'0'.repeat(10_000)}`, refusals.notAnObject.error],
  ['C-29', 'arrays 8,000 deep', '['.repeat(8_000) + ']'.repeat(8_000), refusals.notAnObject.error],
  ['C-29', 'objects 2,500 deep', `${'{"a":'.repeat(2_500)}1${'}'.repeat(2_500)}`, nameRequired],
  ['C-29', 'no members', '{}', nameRequired],
  ['C-29', 'values in __proto__', `{"__proto__":{"name":"${ECHO}","email":"${email}"}}`, nameRequired],

  // The name.
  ['C-71', 'no name', `{"email":"${email}"}`, nameRequired],
  ['C-71', 'a name that is a number', `{"name":7,"email":"${email}"}`, 'name must be text'],
  ['C-71', 'an empty name', `{"name":"","email":"${email}"}`, nameRequired],
  ['C-68', 'a name of white space', `{"name":"  \\t\\u3000 ","email":"${email}"}`, nameRequired],
  [
    'C-67',
    'a name of 101 emoji',
    `{"name":"${'😀'.repeat(101)}","email":"${email}"}`,
    'name must be at most 100 characters long',
  ],
  ['C-69', 'a line break in the name', `{"name":"${ECHO}\\r\\nBcc: x","email":"${email}"}`, control],
  [
    'C-69',
    'a lone surrogate in the name',
    `{"name":"${ECHO}\\ud800","email":"${email}"}`,
    'name must be well-formed Unicode text',
  ],

  // The email.
  ['C-71', 'no email', `{"name":"${ECHO}"}`, emailRequired],
  ['C-71', 'an email that is a number', `{"name":"${ECHO}","email":7}`, 'email must be text'],
  ['C-71', 'an empty email', `{"name":"${ECHO}","email":""}`, emailRequired],
  [
    'C-74',
    'an email of 256',
    `{"name":"${ECHO}","email":"${email.padStart(256, 'a')}"}`,
    'email must be at most 255 characters long',
  ],
  ['C-73', 'an email with a line break', `{"name":"${ECHO}","email":"${email}\\r\\nBcc: x@y.org"}`, emailInvalid],

  // Only the first problem is named.
  ['C-71', 'neither', `{"x":"${ECHO}"}`, nameRequired],
  ['C-71', 'both bad', `{"email":"${ECHO}","name":"${ECHO}\\u0007"}`, control],
]

test('C-19, C-64: every body that is no signup is refused in its own words, which repeat nothing of it', async t => {
  const service = await startService(t)
  const { request } = await clientOf(service)
  for (const [item, what, body, sentence] of rows) {
    await t.test(`${item}: ${what}`, async () => {
      const headers = { 'content-type': 'application/json', origin: 'https://elsewhere.example' }
      const answer = await request('/api/waitlist', {
        method: 'POST',
        headers,
        body: new Uint8Array(Buffer.from(body)),
      })
      assertRefused(answer, 400, sentence)
      assert.ok(!answer.text.includes(ECHO), 'no echo of the body')
      for (const [name, value] of answer.headers) assert.ok(!value.includes(ECHO), `no echo in ${name}`)
      assert.equal(answer.headers.get('vary'), 'Origin')
    })
  }
  const contacts = await (await operatorOf(service.config)).contacts()
  assert.deepEqual(await Array.fromAsync(contacts), [], 'and nothing is stored')
  assert.ok(!JSON.stringify(service.logged).includes(ECHO), 'nor logged')
})

const head = ['POST /api/waitlist HTTP/1.1', 'Host: x', 'Connection: close']

test('C-26: an empty body is a 400 whatever its type, however its length is told', async t => {
  const { baseUrl } = await startService(t)
  const types = ['Content-Type: application/json', 'Content-Type: text/plain', 'X-No: type']
  const lengths: [field: string, body: string][] = [
    ['X-No: length', ''],
    ['Content-Length: 0', ''],
    ['Content-Length: 00', ''],
    ['Transfer-Encoding: chunked', '0\r\n\r\n'],
  ]
  for (const type of types) {
    for (const [length, body] of lengths) {
      const answer = await send(baseUrl, [...head, type, length], body)
      assertRefused(answer, 400, refusals.emptyBody.error)
    }
  }
  const encoded = await send(baseUrl, [...head, 'Content-Encoding: gzip', 'Content-Length: 0'])
  assertRefused(encoded, 400, refusals.emptyBody.error)
})
