/** What never reaches a route: malformed requests, and what stands behind others on a connection. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { assertRefused } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { exchange, readAnswer, readAnswers } from '../harness/raw.ts'
import { openTestServer, startService, wholeFile } from '../harness/service.ts'
import { ca, startTls } from '../harness/tls.ts'

const { baseUrl } = await startService(wholeFile)

const get = 'GET /api/health HTTP/1.1\r\n'
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

const refused: readonly [what: string, bytes: string | Buffer, status: number, sentence: string][] = [
  // RFC 9112 §3.2.
  ['no Host in HTTP/1.1', `${get}\r\n`, 400, HOST],
  ['two Host lines', `${get}Host: x\r\nHost: y\r\n\r\n`, 400, HOST],
  ['two Host lines before a body', whole.replace('\r\n', '\r\nHost: y\r\n'), 400, HOST],
  ['a Host with a space', `${get}Host: a b\r\n\r\n`, 400, HOST],
  ['a Host with two ports', `${get}Host: a:1:2\r\n\r\n`, 400, HOST],

  // RFC 9110 §9.1, §10.1.1, §15.6.6; RFC 6585 §5.
  ['an unknown method', 'BREW / HTTP/1.1\r\nHost: x\r\n\r\n', 501, 'this method is not known here'],
  ['headers that are too large', `${get}Host: x\r\nX: ${'a'.repeat(9_000)}\r\n\r\n`, 431, TOO_LARGE],
  ['too many headers', `${get}Host: x\r\n${'X: y\r\n'.repeat(64)}\r\n`, 431, TOO_LARGE],
  ['a target that is too long', get.replace('health', 'a'.repeat(9_000)), 431, TOO_LARGE],
  ['an unknown expectation', `${get}Host: x\r\nExpect: x\r\n\r\n`, 417, 'this expectation cannot be met'],

  // RFC 9112 §6.1, §6.3.
  ['two lengths', `${post}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`, 400, MALFORMED],
  ['two Content-Length lines', `${post}Content-Length: 3\r\nContent-Length: 4\r\n\r\n`, 400, MALFORMED],
  ['a Content-Length that is no number', `${post}Content-Length: 3x\r\n\r\n`, 400, MALFORMED],
  ['an unknown Transfer-Encoding', `${post}Transfer-Encoding: x\r\n\r\n`, 400, MALFORMED],
  ['a coding below chunked', `${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400, MALFORMED],
  ['a chunk size that is no number', `${post}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, 400, MALFORMED],

  // No HTTP, or no HTTP of ours.
  ['a space before a colon', `${get}Host: x\r\nX : y\r\n\r\n`, 400, MALFORMED],
  ['a folded header', `${get}Host: x\r\nX: y\r\n z\r\n\r\n`, 400, MALFORMED],
  ['a NUL in a header', `${get}Host: x\r\nX: \0\r\n\r\n`, 400, MALFORMED],
  ['a bare carriage return', `${get}Host: x\rX: y\r\n\r\n`, 400, MALFORMED],
  ['a space in the target', 'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n', 400, MALFORMED],
  ['a target that is not ASCII', Buffer.from('GET /ü HTTP/1.1\r\nHost: x\r\n\r\n'), 400, MALFORMED],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, MALFORMED],
  ['a version that does not exist', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n', 400, MALFORMED],
  ['HTTP/2.0 in the syntax of 1.1', 'GET / HTTP/2.0\r\nHost: x\r\n\r\n', 400, MALFORMED],
  ['* for another method than OPTIONS', 'GET * HTTP/1.1\r\nHost: x\r\n\r\n', 400, MALFORMED],
]

test('C-19, C-21, C-31, C-59: what is refused before a route has the one form of an error, and the connection closes', async t => {
  for (const [what, bytes, status, sentence] of refused) {
    await t.test(what, async () => {
      const answer = readAnswer(await exchange(baseUrl, bytes))
      assertRefused(answer, status, sentence)
      assert.equal(answer.headers.get('content-length'), String(Buffer.byteLength(answer.text)))
      assert.ok(!Number.isNaN(Date.parse(answer.headers.get('date') ?? '')))
      assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
      assert.equal(answer.headers.get('connection'), 'close')
    })
  }
})

test('C-31, C-103: a valid Host of every kind is taken, and HTTP/1.0 needs none', async () => {
  for (const host of ['', 'a', 'example.com:443', 'example.com:', '192.0.2.1:80', '[2001:db8::1]:8080', '%41']) {
    const { status } = readAnswer(await exchange(baseUrl, `${get}Host: ${host}\r\nConnection: close\r\n\r\n`))
    assert.equal(status, 200, host)
  }
  assert.equal(readAnswer(await exchange(baseUrl, 'GET /api/health HTTP/1.0\r\n\r\n')).status, 200)
})

test('C-31: an upgrade is ignored, a CONNECT closes the connection', async () => {
  const upgrade = `${get}Host: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`
  assert.equal(readAnswer(await exchange(baseUrl, upgrade)).status, 200)
  assert.equal(await exchange(baseUrl, 'CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n'), '')
})

async function open(t: TestContext, baseUrl: string) {
  const { protocol, hostname, port } = new URL(baseUrl)
  const place = { host: hostname, port: Number(port) }
  const isSecure = protocol === 'https:'
  const socket = isSecure ? connectTls({ ...place, ca }) : connect(place)
  t.after(() => socket.destroy())
  let received = ''
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
  })
  socket.on('error', () => {})
  const closed = new Promise(resolve => socket.once('close', resolve))
  await once(socket, isSecure ? 'secureConnect' : 'connect')
  return { socket, closed, received: () => received, answers: () => readAnswers(received) }
}

for (const [scheme, start] of [
  ['http', startService],
  ['https', startTls],
] as const) {
  describe(`several requests on a connection over ${scheme}`, { concurrency: true }, () => {
    test('pipelined requests are answered in order, however long the first takes', async t => {
      const { baseUrl, databasePath } = await start(t)
      const last = `${get}Host: x\r\nConnection: close\r\n\r\n`
      const answers = readAnswers(await exchange(baseUrl, whole + nowhere + signup('bob') + whole + last))
      assert.deepEqual(
        answers.map(({ status, json }) => json.status ?? json.alreadyExisted ?? status),
        [false, 404, false, true, 'ok'],
      )
      assert.equal(contactsIn(databasePath).length, 2)
    })

    test('who asks again as soon as it is answered gets each answer, on one connection', async t => {
      const { baseUrl } = await start(t)
      const asksAgain = async () => {
        const { socket, received, closed } = await open(t, baseUrl)
        for (let i = 1; i <= 50; i++) {
          socket.write(`${get}Host: x\r\n\r\n`)
          await until(() => received().split('"status":"ok"').length > i && received().endsWith('}'))
        }
        socket.end()
        await closed
      }
      await Promise.all(Array.from({ length: 8 }, asksAgain))
    })

    test('whole requests before garbage are answered, and the last answer says that the connection ends', async t => {
      const { baseUrl } = await start(t)
      for (const [bytes, statuses] of [
        [`${whole}GARBAGE\r\n\r\n`, [200]],
        [`${whole}${nowhere}${get}\0`, [200, 404]],
        [`${whole}${post}Transfer-Encoding: chunked\r\n\r\nxyz\r\n`, [200]],
      ] as const) {
        const answers = readAnswers(await exchange(baseUrl, bytes))
        assert.deepEqual(
          answers.map(({ status }) => status),
          statuses,
        )
        assert.equal(answers.at(-1)!.headers.get('connection'), 'close')
      }
    })

    test('a client that goes on sending garbage reads the refusal', async t => {
      const { baseUrl } = await start(t)
      const { socket, closed, answers } = await open(t, baseUrl)
      const timer = setInterval(() => socket.writable && socket.write('GARBAGE\r\n'.repeat(1_000)), 1)
      t.after(() => clearInterval(timer))
      await closed
      assert.deepEqual(
        answers().map(({ status }) => status),
        [501],
      )
    })

    test('C-30: a body that is refused is read to its end up to 1 MiB, and the connection goes on', async t => {
      const { baseUrl } = await start(t)
      const large = 'x'.repeat(900_000)
      for (const framing of [
        `Content-Length: ${large.length}\r\n\r\n${large}`,
        `Transfer-Encoding: chunked\r\n\r\n${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`,
      ]) {
        const last = `${get}Host: x\r\nConnection: close\r\n\r\n`
        const answers = readAnswers(await exchange(baseUrl, `${post}${framing}${last}`))
        assert.deepEqual(
          answers.map(({ status }) => status),
          [413, 200],
        )
      }
      const endless = await open(t, baseUrl)
      endless.socket.write(`${post}Transfer-Encoding: chunked\r\n\r\n`)
      const timer = setInterval(
        () => endless.socket.writable && endless.socket.write(`4000\r\n${'x'.repeat(0x4000)}\r\n`),
        1,
      )
      t.after(() => clearInterval(timer))
      await endless.closed
      assert.deepEqual(
        endless.answers().map(({ status }) => status),
        [413],
        'it is not waited for until the time is over, which would be a 408',
      )
    })
  })
}

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
  const { socket, closed, received, answers } = await open(t, baseUrl)
  socket.write(whole)
  await asked.promise
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  t.after(() => process.off('warning', warned))
  for (let packet = 0; packet < 20; packet++) {
    socket.write('GARBAGE\r\n\r\n')
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  assert.equal(received(), '')
  assert.deepEqual(warnings, [], 'nothing is kept for each packet')
  stored.resolve()
  await closed
  assert.deepEqual(
    answers().map(({ json, headers }) => [json.alreadyExisted, headers.get('connection')]),
    [[false, 'close']],
  )
})
