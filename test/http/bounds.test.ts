import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import * as limits from '../../src/http/limits.ts'
import { fieldsTooLarge } from '../../src/http/refusals.ts'
import { clientOf } from '../harness/client.ts'
import { exchange, readAnswer } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'

const signup = '{"name":"Ada","email":"ada@example.com"}'
const post = `POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${signup.length}\r\n`

test('C-42, C-61: more fields than are taken are refused, so that none can push out what a proxy said', async t => {
  const { baseUrl } = await startService(t, { TRUST_PROXY: '1', RATE_LIMIT: '1' })
  const fillers = Array.from({ length: limits.HEADER_COUNT }, (_, i) => `X-${i}: x\r\n`).join('')
  for (let i = 0; i < 3; i++) {
    const bytes = `${post}X-Forwarded-For: 192.0.2.${i}\r\n${fillers}X-Forwarded-For: 198.51.100.1\r\n\r\n${signup}`
    const answer = readAnswer(await exchange(baseUrl, bytes, 2_000))
    assert.equal(answer.status, 431)
    assert.equal(JSON.parse(answer.text).error, fieldsTooLarge.error)
  }
})

test('C-61: a client that asks and asks and reads nothing is cut', { timeout: 20_000 }, async t => {
  const { baseUrl } = await startService(t)
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  socket.pause()
  const cut = new Promise(resolve => socket.once('error', resolve).once('close', resolve))
  // In one piece, so that all of them are there before the first answer is taken.
  socket.write('GET /docs/api HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000))
  setTimeout(() => socket.resume(), 1_000)
  await cut
  assert.ok((received.match(/HTTP\/1\.1 200/g) ?? []).length <= limits.PIPELINED)
})

test('requests that are pipelined and read are all answered, in order', async t => {
  const { baseUrl } = await startService(t)
  const paths = Array.from({ length: limits.PIPELINED - 1 }, (_, i) => (i % 2 === 0 ? '/api/health' : '/nowhere'))
  const requests = paths.map(path => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join('')
  const last = 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const received = await exchange(baseUrl, requests + last)
  const expected = [...paths, '/api/health'].map(path => `HTTP/1.1 ${path === '/nowhere' ? 404 : 200}`)
  assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), expected)
})

test('C-92, C-93: health is 503 while another program holds the write lock, as a signup would fail', async t => {
  const service = await startService(t)
  const client = await clientOf(service)
  const other = new DatabaseSync(service.databasePath)
  t.after(() => other.close())
  other.exec('begin immediate')
  const answer = await client.request('/api/health')
  other.exec('rollback')
  assert.equal(answer.status, 503)
})
