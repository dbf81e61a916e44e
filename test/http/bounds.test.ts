import assert from 'node:assert/strict'
import { channel as diagnosticsChannel } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import * as limits from '../../src/http/limits.ts'
import { fieldsTooLarge } from '../../src/http/refusals.ts'
import { clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { exchange, readAnswer, readAnswers } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { startTls } from '../harness/tls.ts'

const signup = '{"name":"Ada","email":"ada@example.com"}'
const head = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const post = `${head}Content-Length: ${signup.length}\r\n`

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

test('C-61: a connection is not read while requests wait on it', async t => {
  const { baseUrl, databasePath } = await startService(t)
  const other = new DatabaseSync(databasePath)
  t.after(() => other.close())
  other.exec('begin immediate')
  const read = Promise.withResolvers<() => number>()
  const accepted = ({ socket }: { socket?: Socket }) => read.resolve(() => socket!.bytesRead)
  const channel = diagnosticsChannel('net.server.socket')
  channel.subscribe(accepted as () => void)
  t.after(() => channel.unsubscribe(accepted as () => void))
  const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1').pause()
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  const bytesRead = await read.promise
  const requests = Buffer.from('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1_000))
  socket.write(`${post}\r\n${signup}`)
  for (let piece = 0; piece < 500; piece++) socket.write(requests)
  await wait(1_500)
  const last = bytesRead()
  other.exec('rollback')
  // The piece that was parsed, and one that came before the pause.
  assert.ok(last > 0 && last <= 4 * 65_536, `${last} of ${500 * requests.length} bytes`)
})

test('C-61: requests that are pipelined and read are all answered, in order, however many they are', async t => {
  const { baseUrl } = await startService(t)
  const paths = Array.from({ length: isSlow ? 10_000 : 2_000 }, (_, i) => (i % 2 === 0 ? '/api/health' : '/nowhere'))
  const requests = paths.map(path => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`).join('')
  const last = 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
  const received = await exchange(baseUrl, requests + last, 30_000)
  const expected = [...paths, '/api/health'].map(path => `HTTP/1.1 ${path === '/nowhere' ? 404 : 200}`)
  assert.deepEqual(received.match(/HTTP\/1\.1 \d+/g), expected)
})

/** Signups on one connection. */
const PIPELINED = isSlow ? 3_000 : 500

for (const [scheme, start] of [
  ['http', startService],
  ['https', startTls],
] as const) {
  test(`C-61: over ${scheme}, ${PIPELINED} pipelined signups are handled one after the other, and all answered`, async t => {
    const service = await start(t)
    const bodies = Array.from({ length: PIPELINED }, (_, i) =>
      JSON.stringify({ name: 'x', email: `v${i}@example.com` }),
    )
    const requests = bodies.map(body => `${head}Content-Length: ${body.length}\r\n\r\n${body}`).join('')
    const last = 'GET /api/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
    const answers = readAnswers(await exchange(service.baseUrl, requests + last, 60_000))
    assert.equal(answers.length, bodies.length + 1)
    assert.ok(answers.every(({ status }) => status === 200))
    const order = contactsIn(service.databasePath).map(({ email }) => email)
    assert.deepEqual(
      order,
      bodies.map(body => JSON.parse(body).email),
    )
  })
}

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
