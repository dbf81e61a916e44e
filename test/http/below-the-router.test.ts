/** What never reaches a route: malformed requests, and what stands behind others on a connection. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { assertRefused } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { exchange, readAnswer, readAnswers } from '../harness/raw.ts'
import { openTestServer, startService, wholeFile } from '../harness/service.ts'
import { handshake, startTls } from '../harness/tls.ts'

const { baseUrl } = await startService(wholeFile)

const get = 'GET /api/health HTTP/1.1\r\n'
const last = `${get}Host: x\r\nConnection: close\r\n\r\n`
const nowhere = 'GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n'
const post = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const signup = (name: string) => {
  const body = JSON.stringify({ name, email: `${name}@example.com` })
  return `${post}Content-Length: ${body.length}\r\n\r\n${body}`
}
const whole = signup('ada')

const HOST = 'the request must have exactly one valid Host field'
const TOO_LARGE = 'the request header fields are too large'
const MALFORMED = 'the request is malformed'

/** The sentences; test/torture/malformed.test.ts has many more requests, and their statuses. */
const refused: readonly [what: string, bytes: string, status: number, sentence: string][] = [
  ['no Host in HTTP/1.1', `${get}\r\n`, 400, HOST],
  ['two Host lines before a body', whole.replace('\r\n', '\r\nHost: y\r\n'), 400, HOST],
  ['a Host with two ports', `${get}Host: a:1:2\r\n\r\n`, 400, HOST],
  ['an unknown method', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', 501, 'this method is not known here'],
  ['headers that are too large', `${get}Host: x\r\nX: ${'a'.repeat(9_000)}\r\n\r\n`, 431, TOO_LARGE],
  ['too many headers', `${get}Host: x\r\n${'X: y\r\n'.repeat(64)}\r\n`, 431, TOO_LARGE],
  ['a target that is too long', get.replace('health', 'a'.repeat(9_000)), 431, TOO_LARGE],
  ['an unknown expectation', `${get}Host: x\r\nExpect: x\r\n\r\n`, 417, 'this expectation cannot be met'],
  ['two lengths', `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`, 400, MALFORMED],
  ['an unknown Transfer-Encoding', `${post}Transfer-Encoding: x\r\n\r\n`, 400, MALFORMED],
  ['a target that is not ASCII', 'GET /ü HTTP/1.1\r\nHost: x\r\n\r\n', 400, MALFORMED],
  ['HTTP/2.0 in the syntax of 1.1', 'GET / HTTP/2.0\r\nHost: x\r\n\r\n', 400, MALFORMED],
  ['* for another method than OPTIONS', 'GET * HTTP/1.1\r\nHost: x\r\n\r\n', 400, MALFORMED],
]

test('C-19, C-21, C-31, C-59: what is refused before a route has the one form of an error, and the connection closes', async () => {
  for (const [what, bytes, status, sentence] of refused) {
    const answer = readAnswer(await exchange(baseUrl, bytes))
    assert.equal(answer.text, JSON.stringify({ error: sentence }), what)
    assertRefused(answer, status)
    assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(answer.text)))
    assert.ok(!Number.isNaN(Date.parse(answer.headers.get('date') ?? '')))
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    assert.equal(answer.headers.get('connection'), 'close')
  }
})

test('C-31, C-103: a valid Host of every kind is taken, HTTP/1.0 needs none, an upgrade is ignored, CONNECT closes', async () => {
  for (const host of ['', 'example.com:443', 'example.com:', '192.0.2.1:80', '[2001:db8::1]:8080', '%41']) {
    const { status } = readAnswer(await exchange(baseUrl, `${get}Host: ${host}\r\nConnection: close\r\n\r\n`))
    assert.equal(status, 200, host)
  }
  assert.equal(readAnswer(await exchange(baseUrl, 'GET /api/health HTTP/1.0\r\n\r\n')).status, 200)
  const upgrade = `${get}Host: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`
  assert.equal(readAnswer(await exchange(baseUrl, upgrade)).status, 200)
  assert.equal(await exchange(baseUrl, 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n'), '')
})

async function open(t: TestContext, baseUrl: string) {
  const { protocol, port } = new URL(baseUrl)
  const socket = protocol === 'https:' ? await handshake({ baseUrl }, {}) : connect(Number(port), '127.0.0.1')
  assert.ok(!(socket instanceof Error), String(socket))
  t.after(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  socket.on('error', () => {})
  const closed = new Promise(resolve => socket.once('close', resolve))
  /** Sends this every millisecond until the other side closes. */
  const keepSending = (bytes: string) => {
    const timer = setInterval(() => socket.writable && socket.write(bytes), 1)
    return closed.finally(() => clearInterval(timer))
  }
  return { socket, closed, keepSending, received: () => received }
}

const statusesOf = (received: string) => readAnswers(received).map(({ status }) => status)

for (const [scheme, start] of [
  ['http', startService],
  ['https', startTls],
] as const) {
  test(`over ${scheme} pipelined requests are answered in order, and so are those sent one after the other`, async t => {
    const { baseUrl, databasePath } = await start(t)
    const answers = readAnswers(await exchange(baseUrl, whole + nowhere + signup('bob') + whole + last))
    assert.deepEqual(
      answers.map(({ status, json }) => json.status ?? json.alreadyExisted ?? status),
      [false, 404, false, true, 'ok'],
    )
    assert.equal(contactsIn(databasePath).length, 2)

    const { socket, received, closed } = await open(t, baseUrl)
    for (let i = 1; i <= 20; i++) {
      socket.write(`${get}Host: x\r\n\r\n`)
      await until(() => received().split('"status":"ok"').length > i && received().endsWith('}'))
    }
    socket.end()
    await closed
  })
}

describe('several requests on a connection', { concurrency: true }, () => {
  test('whole requests before garbage are answered, and the last answer says that the connection ends', async () => {
    for (const [bytes, statuses] of [
      [`${whole}GARBAGE\r\n\r\n`, [200]],
      [`${whole}${nowhere}${get}\0`, [200, 404]],
      [`${whole}${post}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, [200]],
    ] as const) {
      const received = await exchange(baseUrl, bytes)
      assert.deepEqual(statusesOf(received), statuses)
      assert.equal(readAnswers(received).at(-1)!.headers.get('connection'), 'close')
    }
  })

  test('a client that goes on sending garbage reads the refusal', async t => {
    const { keepSending, received } = await open(t, baseUrl)
    await keepSending('GARBAGE\r\n'.repeat(1_000))
    assert.deepEqual(statusesOf(received()), [501])
  })

  test('C-25, C-30: a refused body is read to its end up to 1 MiB, and the connection goes on', async t => {
    const large = 'x'.repeat(900_000)
    for (const [request, statuses] of [
      [whole.replace('application/json', 'text/plain'), [415, 200]],
      [`${post}Content-Length: ${large.length}\r\n\r\n${large}`, [413, 200]],
      [`${post}Transfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`, [413, 200]],
    ] as const) {
      assert.deepEqual(statusesOf(await exchange(baseUrl, request + last)), statuses)
    }
    const endless = await open(t, baseUrl)
    endless.socket.write(`${post}Transfer-Encoding: chunked\r\n\r\n`)
    await endless.keepSending(`4000\r\n${'x'.repeat(0x4000)}\r\n`)
    assert.deepEqual(statusesOf(endless.received()), [413], 'and not 408 in the end')
  })

  test('C-31: a signup in progress is answered, however much garbage arrives meanwhile', async t => {
    const asked = Promise.withResolvers<void>()
    const stored = Promise.withResolvers<void>()
    const { baseUrl } = await openTestServer(t, {}, store => ({
      ...store,
      async admit(signup) {
        asked.resolve()
        await stored.promise
        return store.admit(signup)
      },
    }))
    const { socket, closed, received } = await open(t, baseUrl)
    socket.write(whole)
    await asked.promise
    const warn = t.mock.method(process, 'emitWarning')
    for (let packet = 0; packet < 20; packet++) {
      socket.write('GARBAGE\r\n\r\n')
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    assert.equal(received(), '')
    assert.equal(warn.mock.callCount(), 0, 'nothing is kept for each packet')
    stored.resolve()
    await closed
    const [answer, ...others] = readAnswers(received())
    assert.deepEqual([answer!.json.alreadyExisted, answer!.headers.get('connection'), others], [false, 'close', []])
  })
})
