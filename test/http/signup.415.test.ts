import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { encoded, notJson } from '../../src/http/wire/refusals.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { exchange, send } from '../harness/raw.ts'
import { startService, wholeFile } from '../harness/service.ts'

const { baseUrl } = await startService(wholeFile)
const client = await clientOf({ baseUrl })

const signup = '{"name":"Ada","email":"ada@example.com"}'
const post = ['POST /api/waitlist HTTP/1.1', 'Host: x']

const plain = [
  'text/plain',
  'text/plain;charset=UTF-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
]
const nearly = ['text/json', 'application/jsonp', 'application/ld+json', 'application/*', '*/*', 'json']
const otherTypes = [...plain, ...nearly, 'application / json', 'application/json, text/plain', '"application/json"']

test('C-25, C-55: a body of another type is refused and told what would be accepted', async () => {
  for (const type of otherTypes) {
    const answer = await client.signUp(signup, { 'content-type': type })
    assertRefused(answer, 415, notJson.error)
    assert.equal(answer.headers.get('accept'), 'application/json', type)
    assert.equal(answer.headers.get('accept-post'), 'application/json', type)
  }
})

test('C-25: a body without a type, or with an empty one, is refused', async () => {
  const end = [`Content-Length: ${signup.length}`, 'Connection: close']
  assertRefused(await send(baseUrl, [...post, ...end], signup), 415, notJson.error)
  assertRefused(await send(baseUrl, [...post, 'Content-Type:', ...end], signup), 415, notJson.error)
  assertRefused(await send(baseUrl, [...post, 'Content-Type: ;charset=utf-8', ...end], signup), 415, notJson.error)
})

test('C-25: the same for a chunked body, whose length is not known', async () => {
  const chunked = [...post, 'Transfer-Encoding: chunked', 'Connection: close']
  const body = `${signup.length.toString(16)}\r\n${signup}\r\n0\r\n\r\n`
  assertRefused(await send(baseUrl, chunked, body), 415, notJson.error)
  assertRefused(await send(baseUrl, [...chunked, 'Content-Type: text/plain'], body), 415, notJson.error)
})

test('C-25: a compressed body is refused and told that only identity is accepted', async () => {
  const client = await clientOf({ baseUrl })
  const bodies: [coding: string, body: Buffer][] = [
    ['gzip', gzipSync(signup)],
    ['GZIP', gzipSync(signup)],
    ['br', brotliCompressSync(signup)],
    ['identity, gzip', gzipSync(signup)],
    ['x-unknown', Buffer.from(signup)],
  ]
  for (const [coding, body] of bodies) {
    const headers = { 'content-type': 'application/json', 'content-encoding': coding }
    const answer = await client.request('/api/waitlist', { method: 'POST', headers, body: new Uint8Array(body) })
    assertRefused(answer, 415, encoded.error)
    assert.equal(answer.headers.get('accept-encoding'), 'identity', coding)
    assert.equal(answer.headers.get('accept'), null, coding)
  }
})

test('C-30: a client that expects 100 gets the 415 and no 100 before it, and the connection closes', async () => {
  const head = [...post, 'Content-Type: text/plain', 'Expect: 100-continue', `Content-Length: ${signup.length}`]
  const answer = await send(baseUrl, head)
  assertRefused(answer, 415, notJson.error)
  assert.deepEqual(answer.interim, [])
  assert.equal(answer.headers.get('connection'), 'close')
})

test('C-25: a refused body does not spoil the next request of the same connection', async () => {
  const first = [...post, 'Content-Type: text/plain', `Content-Length: ${signup.length}`, '', signup].join('\r\n')
  const second = [
    ...post,
    'Content-Type: application/json',
    `Content-Length: ${signup.length}`,
    'Connection: close',
    '',
    signup,
  ]
  const received = await exchange(baseUrl, first + second.join('\r\n'))
  assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 415', 'HTTP/1.1 200'])
})
