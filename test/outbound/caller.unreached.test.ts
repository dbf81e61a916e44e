import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { Worker } from 'node:worker_threads'
import { freePort } from '../harness/port.ts'
import { fixture } from '../harness/tls.ts'
import { accepting, calling, classOf, create, impatient, listening, patient, serving } from './misbehaving.ts'

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

describe('a call that was never sent is unreached: it is certainly without effect', { timeout: 60_000 }, () => {
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
    const base = `http://127.0.0.1:${await blackHole(t)}`
    const byConnection = calling(t, base)(create, patient).then(() => 'the connection was given up')
    // A signal alone does not end a call that undici has not begun.
    const byLimit = calling(t, base)(create, impatient)
    assert.equal(await Promise.race([byConnection, byLimit.then(classOf)]), 'unreached')
    await byConnection
  })

  test('TLS spoken to a port without', async t => {
    const { base, received } = await serving(t, response => response.end('{}'))
    const outcome = await calling(t, base.replace('http:', 'https:'))(create, patient)
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
    const { base } = await listening(t, server)
    const outcome = await calling(t, base.replace('http:', 'https:'))(create, patient)
    assert.equal(classOf(outcome), 'unreached')
    assert.equal(heard, '')
  })

  test('a side that hangs up during the handshake', async t => {
    const { base } = await accepting(t, socket => socket.once('data', () => socket.resetAndDestroy()))
    assert.equal(classOf(await calling(t, base.replace('http:', 'https:'))(create, patient)), 'unreached')
  })

  test('a process that stops: what waits for its turn is not sent', async t => {
    const { base, received } = await serving(t, response => response.end('{}'))
    const outcome = await calling(t, base)(create, AbortSignal.abort())
    assert.equal(classOf(outcome), 'unreached')
    assert.ok(outcome.is === 'unreached' && outcome.notSent === true)
    assert.deepEqual(received, [])
  })
})

describe('429 and 503 are unreached too: the other side says that it did nothing', { timeout: 60_000 }, () => {
  const soon = new Date(Date.now() + 90_000)
  const cases: readonly [status: number, field: Record<string, string>, from: number | undefined, to?: number][] = [
    [429, {}, 5_000],
    [429, { 'retry-after': '7' }, 7_000],
    [429, { 'retry-after': 'soon' }, 5_000],
    [429, { 'retry-after': soon.toUTCString() }, 60_000, 90_000],
    [429, { 'x-ratelimit-reset': String(Math.floor(soon.getTime() / 1000)) }, 60_000, 90_000],
    [503, {}, undefined],
    [503, { 'retry-after': '7' }, 7_000],
    [503, { 'retry-after': soon.toUTCString() }, 60_000, 90_000],
    [429, { 'retry-after': '36000' }, 36_000_000],
    [503, { 'retry-after': '999999' }, 999_999_000],
  ]
  for (const [status, field, from, to = from] of cases) {
    test(`${status} with ${JSON.stringify(Object.keys(field))}: ${from} to ${to} ms`, async t => {
      const { base, received } = await serving(t, response => response.writeHead(status, field).end('{"error":"no"}'))
      const call = calling(t, base, { waitFields: ['retry-after', 'x-ratelimit-reset'] })
      const outcome = await call(create, patient)
      assert.equal(classOf(outcome), 'unreached')
      assert.ok(outcome.is === 'unreached')
      if (from === undefined) return assert.equal(outcome.retryAfter, undefined)
      assert.ok(outcome.retryAfter! >= from && outcome.retryAfter! <= to!, String(outcome.retryAfter))
      // Whole milliseconds, which a store can keep.
      assert.ok(Number.isInteger(outcome.retryAfter) && outcome.notSent === undefined)
      assert.equal(received.length, 1)
    })
  }

  test('the reason says until when it asks to wait', async t => {
    const until = new Date(Date.now() + 86_400_000)
    const fields = { 'retry-after': until.toUTCString() }
    const { base } = await serving(t, response => response.writeHead(429, fields).end())
    const outcome = await calling(t, base)(create, patient)
    assert.ok('why' in outcome)
    assert.ok(outcome.why.includes(`429, asking to wait until ${until.toISOString().slice(0, 19)}`), outcome.why)
  })

  test('also when the connection breaks before the body is there', async t => {
    const { base } = await serving(t, response => {
      response.writeHead(429, { 'content-length': '100' }).write('{')
      setTimeout(() => response.socket?.resetAndDestroy(), 50)
    })
    assert.equal(classOf(await calling(t, base)(create, patient)), 'unreached')
  })
})
