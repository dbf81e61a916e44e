import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { type Attempt, attempting } from '../../src/outbound/attempt.ts'
import { type Call, type CallerSettings, caller } from '../../src/outbound/caller.ts'
import type { Reply } from '../../src/outbound/reply.ts'
import type { Failure } from '../../src/waitlist/ports/destination.ts'
import { listening } from '../harness/listening.ts'
import { freePort } from '../harness/port.ts'
import { type Deed, startReceiver } from '../harness/receiver.ts'
import { fixture } from '../harness/tls.ts'

const KEY = 'sk_live_0123456789abcdef'

/** With everything that must never be in a log. */
const create: Call = {
  to: 'create a contact',
  method: 'POST',
  path: '/contacts',
  body: { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace' },
}

type Test = Pick<TestContext, 'after'>

const serving = (t: Test, deed: Deed) => startReceiver(t, () => deed)
/** A server of bytes. */
const accepting = (t: Test, take: (socket: Socket) => void): Promise<string> => listening(t, createServer(take))

/** Makes one call an attempt of its own, with this time limit; or with a long one, and this signal to leave. */
type Calling = (call: Call, limit: number | AbortSignal) => Promise<Reply | Failure>

/** Calls with a key, at a rate that is no hindrance unless the test says another. */
function calling(t: Test, base: string, settings: Partial<CallerSettings> = {}): Calling {
  const rate = { calls: 1_000, per: 1_000, connections: 10 }
  const { call, close } = caller({ base, headers: { authorization: `Bearer ${KEY}` }, rate, ...settings })
  t.after(close)
  return alone(call)
}

const never = new AbortController().signal

const alone =
  (call: (call: Call, attempt: Attempt) => Promise<Reply | Failure>): Calling =>
  (one, limit) =>
    typeof limit === 'number'
      ? attempting(limit, never, attempt => call(one, attempt))
      : attempting(patient, limit, attempt => call(one, attempt))

/** The class of an outcome, and that its reason is one line, says what the call was for, and betrays nothing. */
function classOf(outcome: Reply | Failure): string {
  const why = outcome.is === 'answered' ? outcome.summary : outcome.why
  assert.match(why, /^create a contact: [^\n]+$/)
  assert.doesNotMatch(why, /ada|@|example|sk_live|0123456789abcdef/i)
  return outcome.is
}

/** Long enough for everything that comes at all. */
const patient = 20_000
const impatient = 1_000

/** Status, content type and body of an answer, and what is read from it. */
const whole: readonly [status: number, type: string, body: string, json: unknown][] = [
  [200, 'application/json', '{"id":"1"}', { id: '1' }],
  [200, 'application/vnd.api+json; charset=utf-8', '\n{"id":"ü"}', { id: 'ü' }],
  [201, 'text/html', '{"id":"1"}', { id: '1' }],
  [200, 'text/html', '<p>Welcome', undefined],
  [200, 'application/json', '{"id":"1', undefined],
  [204, 'application/json', '', undefined],
  [400, 'application/json', '{"message":"bad"}', { message: 'bad' }],
  [404, 'text/html', '<h1>Not found', undefined],
  [499, 'application/json', 'null', null],
]

describe('an answer that arrived whole is answered, for the caller to judge', () => {
  for (const [status, type, body, json] of whole) {
    test(`${status} of ${type}: ${JSON.stringify(body)}`, async t => {
      const { url } = await serving(t, response => {
        response.writeHead(status, { 'content-type': type, 'X-Twice': ['a', 'b'] }).end(body)
      })
      const outcome = await calling(t, url)(create, patient)
      assert.equal(classOf(outcome), 'answered')
      assert.ok(outcome.is === 'answered')
      assert.deepEqual([outcome.status, outcome.json], [status, json])
      assert.deepEqual([outcome.fields['content-type'], outcome.fields['x-twice']], [type, 'a, b'])
    })
  }

  test('an interim answer before it does no harm', async t => {
    const { url } = await serving(t, response => {
      response.writeEarlyHints({ link: '</x>; rel=preload' })
      response.end('{"id":"1"}')
    })
    const outcome = await calling(t, url)(create, patient)
    assert.deepEqual(outcome.is === 'answered' && [outcome.status, outcome.json], [200, { id: '1' }])
  })

  test('what a 4xx says goes to the log without addresses, and without the keys', async t => {
    const { url } = await serving(t, response => {
      const message = `the contact ADA@example.com (ada%40example.com) is odd; keys ${KEY}, another-key`
      response.writeHead(422).end(JSON.stringify({ code: 'odd', message }))
    })
    const call = { ...create, headers: { authorization: 'Bearer another-key' } }
    const outcome = await calling(t, url)(call, patient)
    assert.equal(classOf(outcome), 'answered')
    const said = '{"code":"odd","message":"the contact … (…) is odd; keys …, …"}'
    const summary = `create a contact: answered with 422 (${said})`
    assert.equal(outcome.is === 'answered' && outcome.summary, summary)
  })

  test('what is sent: path and query after the base, the fields of both, the body as JSON or as it is', async t => {
    const { url, received } = await serving(t, response => response.end('{}'))
    const call = calling(t, `${url}/api/v3`)
    await call({ ...create, query: { 'a b': 'c&d=é' }, headers: { 'idempotency-key': 'evt_1' } }, patient)
    await call({ to: 'look', method: 'GET', path: '/me' }, patient)
    await call({ to: 'tell', method: 'PUT', path: '/hook', body: '{"is": "signed"}' }, patient)
    assert.deepEqual(
      received.map(({ method, path, query, text }) => [method, path, query, text]),
      [
        ['POST', '/api/v3/contacts', { 'a b': 'c&d=é' }, JSON.stringify(create.body)],
        ['GET', '/api/v3/me', {}, ''],
        ['PUT', '/api/v3/hook', {}, '{"is": "signed"}'],
      ],
    )
    assert.deepEqual(
      received.map(({ headers }) => [headers.authorization, headers['content-type'], headers['idempotency-key']]),
      [
        [`Bearer ${KEY}`, 'application/json', 'evt_1'],
        [`Bearer ${KEY}`, undefined, undefined],
        [`Bearer ${KEY}`, 'application/json', undefined],
      ],
    )
  })

  test('a connection that was closed while idle is replaced, and the call is answered', async t => {
    const { url, received, sockets, connections } = await serving(t, response => response.end('{}'))
    const call = calling(t, url, { rate: { calls: 1_000, per: 1_000, connections: 1 } })
    for (let i = 0; i < 3; i++) assert.equal(classOf(await call(create, patient)), 'answered')
    assert.equal(connections(), 1)
    for (let i = 0; i < 5; i++) {
      for (const socket of sockets) socket.end()
      while (sockets.size > 0) await new Promise(resolve => setTimeout(resolve, 10))
      assert.equal(classOf(await call(create, patient)), 'answered')
    }
    assert.deepEqual([connections(), received.length], [6, 8])
  })
})

describe('a redirect is misconfigured, and nothing goes to where it points', () => {
  for (const status of [301, 302, 303, 304, 307, 308]) {
    test(`${status}`, async t => {
      const elsewhere = await serving(t, response => response.end('{"id":"1"}'))
      const { url } = await serving(t, response => {
        response.writeHead(status, { location: `${elsewhere.url}/contacts` }).end()
      })
      const outcome = await calling(t, url)(create, patient)
      assert.equal(classOf(outcome), 'misconfigured')
      assert.equal(elsewhere.connections(), 0, 'neither body nor key are for anybody else')
    })
  }
})

/** What a server does once it has read the whole request, and so may have done what it was asked to. */
const afterReading: Record<string, Deed> = {
  'resets the connection': response => response.socket?.resetAndDestroy(),
  'resets in the middle of the answer': response => {
    response.writeHead(200, { 'content-length': '100' }).write('{"id":')
    setTimeout(() => response.socket?.resetAndDestroy(), 50)
  },
  'closes in the middle of a chunk': response => {
    response.writeHead(200, { 'transfer-encoding': 'chunked' }).write('{"id":')
    setTimeout(() => response.socket?.end('5\r\n'), 50)
  },
  'answers with 100 kB': response => response.end(JSON.stringify({ id: 'x'.repeat(100_000) })),
  'answers with 100 kB in chunks': response => {
    response.write('{"id":"')
    for (let i = 0; i < 100; i++) response.write('x'.repeat(1_000))
    response.end('"}')
  },
  'floods with header fields': response => {
    for (let i = 0; i < 100; i++) response.setHeader(`x-flood-${i}`, 'x'.repeat(1_000))
    response.end('{}')
  },
  'speaks something else': response => response.socket?.end('+OK POP3 ready\r\n'),
  'answers with 500': response => response.writeHead(500).end('{"message":"<ada@example.com> broke it"}'),
  'switches protocols': response => response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'),
}

/** What never ends by itself. */
const forEver: Record<string, Deed> = {
  'says nothing': () => {},
  'never ends its header': response => response.socket?.write('HTTP/1.1 200 OK\r\n'),
  'sends interim answers only': response => {
    const timer = setInterval(() => response.writeProcessing(), 20)
    response.on('close', () => clearInterval(timer))
  },
  'lets its body drip': response => {
    response.writeHead(200)
    const timer = setInterval(() => response.write(' '), 20)
    response.on('close', () => clearInterval(timer))
  },
}

describe('a call that arrived and was not answered well is unclear', () => {
  for (const [what, answer] of Object.entries(afterReading)) {
    test(`the other side ${what}`, async t => {
      const { url, received } = await serving(t, answer)
      assert.equal(classOf(await calling(t, url)(create, patient)), 'unclear')
      assert.equal(received.length, 1, 'it is never sent a second time by itself')
    })
  }

  test('the other side resets while the request is on its way', async t => {
    const url = await accepting(t, socket => socket.once('data', () => socket.resetAndDestroy()))
    const body = { text: 'x'.repeat(1_000_000) }
    assert.equal(classOf(await calling(t, url)({ ...create, body }, patient)), 'unclear')
  })

  for (const [what, answer] of Object.entries(forEver)) {
    test(`the other side ${what}: its time limit ends it, and the connection`, async t => {
      const { url, received, sockets } = await serving(t, answer)
      const outcome = await calling(t, url)(create, impatient)
      assert.equal(classOf(outcome), 'unclear')
      assert.match(outcome.is === 'unclear' ? outcome.why : '', /no answer in time/)
      assert.equal(received.length, 1)
      while (sockets.size > 0) await new Promise(resolve => setTimeout(resolve, 20))
    })
  }

  test('the process stops while the call is under way', async t => {
    const leave = new AbortController()
    const { url } = await serving(t, () => leave.abort())
    const outcome = await calling(t, url)(create, leave.signal)
    assert.equal(classOf(outcome), 'unclear')
    assert.match(outcome.is === 'unclear' ? outcome.why : '', /our own stop/)
  })
})

describe('where the status alone tells, a 2xx is answered whatever its body is', () => {
  const bodies = ['answers with 100 kB', 'answers with 100 kB in chunks', 'resets in the middle of the answer'] as const
  for (const what of [...bodies, 'closes in the middle of a chunk'] as const) {
    test(`the other side ${what}`, async t => {
      const { url, received } = await serving(t, afterReading[what]!)
      const outcome = await calling(t, url)({ ...create, statusAlone: true }, patient)
      assert.deepEqual([outcome.is, outcome.is === 'answered' && outcome.status], ['answered', 200])
      assert.equal(received.length, 1)
    })
  }

  test('the other side lets its body drip', async t => {
    const { url, sockets } = await serving(t, forEver['lets its body drip']!)
    assert.equal(classOf(await calling(t, url)({ ...create, statusAlone: true }, impatient)), 'answered')
    while (sockets.size > 0) await new Promise(resolve => setTimeout(resolve, 20))
  })
})

/** A port whose queue of connections is full, and whose owner accepts none: whoever connects hears nothing. */
async function blackHole(t: TestContext): Promise<number> {
  const flag = new Int32Array(new SharedArrayBuffer(4))
  const code = `
    const { parentPort, workerData } = require('node:worker_threads')
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port)
      Atomics.wait(workerData, 0, 0)
    })`
  const worker = new Worker(code, { eval: true, workerData: flag })
  const [port] = await once(worker, 'message')
  const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  await Promise.race([once(fillers[0]!, 'connect'), once(fillers[1]!, 'connect')])
  t.after(async () => {
    for (const filler of fillers) filler.destroy()
    Atomics.store(flag, 0, 1)
    Atomics.notify(flag, 0)
    await worker.terminate()
  })
  return port
}

describe('a call that was never sent is unreached: it is certainly without effect', () => {
  test('a port that nobody listens on', async t => {
    const outcome = await calling(t, `http://127.0.0.1:${await freePort()}`)(create, patient)
    assert.equal(classOf(outcome), 'unreached')
  })

  test('a name that does not exist', async t => {
    // A label of more than 63 characters (RFC 1035 §2.3.4) is refused without asking anybody.
    const outcome = await calling(t, `http://${'x'.repeat(64)}.test`)(create, patient)
    assert.equal(classOf(outcome), 'unreached')
  })

  test('a side that never accepts, and a time limit that comes first', async t => {
    const url = `http://127.0.0.1:${await blackHole(t)}`
    const byConnection = calling(t, url)(create, patient).then(() => 'the connection was given up')
    // A signal alone does not end a call that undici has not begun.
    const byLimit = calling(t, url)(create, impatient)
    assert.equal(await Promise.race([byConnection, byLimit.then(classOf)]), 'unreached')
    await byConnection
  })

  test('TLS spoken to a port without', async t => {
    const { url, received } = await serving(t, response => response.end('{}'))
    const outcome = await calling(t, url.replace('http:', 'https:'))(create, patient)
    assert.equal(classOf(outcome), 'unreached')
    assert.deepEqual(received, [])
  })

  test('a certificate that nobody vouches for: neither body nor key are sent', async t => {
    let heard = ''
    const pair = { cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) }
    const server = createTlsServer(pair, socket => {
      socket
        .on('error', () => {})
        .on('data', chunk => {
          heard += chunk
        })
    })
    const url = await listening(t, server)
    const outcome = await calling(t, url.replace('http:', 'https:'))(create, patient)
    assert.equal(classOf(outcome), 'unreached')
    assert.equal(heard, '')
  })

  test('a side that hangs up during the handshake', async t => {
    const url = await accepting(t, socket => socket.once('data', () => socket.resetAndDestroy()))
    assert.equal(classOf(await calling(t, url.replace('http:', 'https:'))(create, patient)), 'unreached')
  })

  test('a process that stops: what waits for its turn is not sent', async t => {
    const { url, received } = await serving(t, response => response.end('{}'))
    const outcome = await calling(t, url)(create, AbortSignal.abort())
    assert.equal(classOf(outcome), 'unreached')
    assert.ok(outcome.is === 'unreached' && outcome.notSent === true)
    assert.deepEqual(received, [])
  })
})

describe('429 and 503 are unreached too: the other side says that it did nothing', () => {
  const cases: readonly [status: number, fields: Record<string, string>, retryAfter: number | undefined][] = [
    [429, {}, 5_000],
    [429, { 'retry-after': '7' }, 7_000],
    [429, { 'retry-after': 'soon' }, 5_000],
    [429, { 'x-ratelimit-reset': '36000' }, 36_000_000],
    [503, {}, undefined],
    [503, { 'retry-after': '7' }, 7_000],
  ]
  for (const [status, fields, retryAfter] of cases) {
    test(`${status} with ${JSON.stringify(fields)}: ${retryAfter} ms`, async t => {
      const { url, received } = await serving(t, response => response.writeHead(status, fields).end('{"error":"no"}'))
      const call = calling(t, url, { waitFields: ['retry-after', 'x-ratelimit-reset'] })
      const outcome = await call(create, patient)
      assert.equal(classOf(outcome), 'unreached')
      assert.ok(outcome.is === 'unreached' && outcome.notSent === undefined)
      assert.equal(outcome.retryAfter, retryAfter)
      assert.equal(received.length, 1)
    })
  }

  test('the reason says until when it asks to wait', async t => {
    const until = new Date(Date.now() + 86_400_000)
    const fields = { 'retry-after': until.toUTCString() }
    const { url } = await serving(t, response => response.writeHead(429, fields).end())
    const outcome = await calling(t, url)(create, patient)
    assert.ok('why' in outcome)
    assert.ok(outcome.why.includes(`429, asking to wait until ${until.toISOString().slice(0, 19)}`), outcome.why)
  })

  test('also when the connection breaks before the body is there', async t => {
    const { url } = await serving(t, response => {
      response.writeHead(429, { 'content-length': '100' }).write('{')
      setTimeout(() => response.socket?.resetAndDestroy(), 50)
    })
    assert.equal(classOf(await calling(t, url)(create, patient)), 'unreached')
  })
})

const count = (classes: readonly string[], name: string) => classes.filter(each => each === name).length

describe('the bounds of a caller', { concurrency: true }, () => {
  test('1,000 calls to a side that hangs: few are sent, few wait, and all end in their time', async t => {
    const { url, received, connections } = await serving(t, () => {})
    const call = calling(t, url, { rate: { calls: 10, per: 1_000, connections: 10 } })
    let waiting = 1_000
    const began = performance.now()
    const asked = Array.from({ length: 1_000 }, async () => {
      const outcome = await call(create, 1_500)
      waiting--
      return outcome
    })
    while (received.length < 10) await new Promise(resolve => setTimeout(resolve, 10))
    const most = 50 + 10 * Math.floor((performance.now() - began) / 1_000)
    assert.ok(waiting <= most, `${waiting} wait: 10 that were sent each second, and 40 that can begin in the next four`)
    assert.equal(connections(), 10)
    const classes = (await Promise.all(asked)).map(classOf)
    assert.equal(count(classes, 'unclear'), received.length, 'what was received may have taken effect')
    assert.equal(count(classes, 'unreached'), 1_000 - received.length, 'and nothing else was received')
  })

  test('no more calls at once than the vendor allows, and no more connections', async t => {
    let atOnce = 0
    let most = 0
    const { url, connections } = await serving(t, response => {
      most = Math.max(most, ++atOnce)
      setTimeout(() => {
        atOnce--
        response.end('{}')
      }, 5)
    })
    const call = calling(t, url, { rate: { calls: 1_000, per: 1_000, connections: 3 } })
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => call(create, patient)))
    assert.deepEqual(outcomes.map(classOf), Array(50).fill('answered'))
    assert.equal(most, 3)
    assert.equal(connections(), 3)
  })

  test('a call whose turn comes too late is refused at once, and says that it was not sent', async t => {
    const { url, received } = await serving(t, response => response.end('{}'))
    const call = calling(t, url, { rate: { calls: 1, per: 6_000, connections: 1 } })
    await call(create, patient)
    const outcome = await call(create, patient)
    assert.equal(classOf(outcome), 'unreached')
    assert.ok(outcome.is === 'unreached' && outcome.notSent === true && outcome.retryAfter === undefined)
    assert.equal(received.length, 1)
  })

  test('the calls of one attempt share its time: the second one hangs for what the first has left', async t => {
    let left = () => Number.NaN
    let leftForSecond = Number.NaN
    const { url, received } = await serving(t, (response, { path }) => {
      if (path === '/first') setTimeout(() => response.end('{}'), 1_000)
      else leftForSecond = left()
    })
    const rate = { calls: 100, per: 1_000, connections: 2 }
    const { call, close } = caller({ base: url, headers: {}, rate })
    t.after(close)
    const outcome = await attempting(2_500, never, async attempt => {
      left = attempt.left
      assert.equal((await call({ ...create, path: '/first' }, attempt)).is, 'answered')
      return call(create, attempt)
    })
    assert.ok(leftForSecond <= 1_500, `${leftForSecond} ms were left`)
    assert.equal(classOf(outcome), 'unclear')
    assert.equal(received.length, 2)
  })

  test('a call that is under way when the caller is closed ends; so do those that wait and those that come', async t => {
    const { url, received } = await serving(t, () => {})
    const rate = { calls: 100, per: 1_000, connections: 1 }
    const { call: attempted, close } = caller({ base: url, headers: {}, rate })
    const call = alone(attempted)
    const asked = [call(create, patient), call(create, patient)]
    while (received.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    await close()
    const classes = (await Promise.all([...asked, call(create, impatient)])).map(classOf)
    assert.deepEqual(classes, ['unclear', 'unreached', 'unreached'])
    assert.equal(received.length, 1)
  })
})
