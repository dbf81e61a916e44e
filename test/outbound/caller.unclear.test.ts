import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { accepting, calling, classOf, create, impatient, patient, serving } from './misbehaving.ts'

const html = '<!doctype html><title>502</title><h1>Bad gateway</h1>'

/** What a server does once it has read the whole request, and so may have done what it was asked to. */
const afterReading: Record<string, (response: ServerResponse) => void> = {
  'resets the connection': response => response.socket?.resetAndDestroy(),
  'closes the connection': response => response.socket?.end(),
  'resets in the middle of the answer': response => {
    response.writeHead(200, { 'content-length': '100' }).write('{"id":')
    setTimeout(() => response.socket?.resetAndDestroy(), 50)
  },
  'closes in the middle of the answer': response => {
    response.writeHead(200, { 'content-length': '100' }).write('{"id":')
    setTimeout(() => response.socket?.end(), 50)
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
  'answers with 500': response => response.writeHead(500).end('{"message":"Ada Lovelace <ada@example.com> broke it"}'),
  'answers with 502 and HTML': response => response.writeHead(502, { 'content-type': 'text/html' }).end(html),
  'switches protocols': response => response.socket?.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n'),
}

/** What never ends by itself. */
const forEver: Record<string, (response: ServerResponse) => void> = {
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

describe('a call that arrived and was not answered well is unclear', { timeout: 60_000 }, () => {
  for (const [what, answer] of Object.entries(afterReading)) {
    test(`the other side ${what}`, async t => {
      const { base, received } = await serving(t, answer)
      assert.equal(classOf(await calling(t, base)(create, patient)), 'unclear')
      assert.equal(received.length, 1, 'it is never sent a second time by itself')
    })
  }

  test('the other side resets while the request is on its way', async t => {
    const { base } = await accepting(t, socket => socket.once('data', () => socket.resetAndDestroy()))
    const body = { text: 'x'.repeat(1_000_000) }
    assert.equal(classOf(await calling(t, base)({ ...create, body }, patient)), 'unclear')
  })

  for (const [what, answer] of Object.entries(forEver)) {
    test(`the other side ${what}: its time limit ends it, and the connection`, async t => {
      const { base, received, sockets } = await serving(t, answer)
      const outcome = await calling(t, base)(create, impatient)
      assert.equal(classOf(outcome), 'unclear')
      assert.match(outcome.is === 'unclear' ? outcome.why : '', /no answer in time/)
      assert.equal(received.length, 1)
      while (sockets.size > 0) await new Promise(resolve => setTimeout(resolve, 20))
    })
  }

  test('the process stops while the call is under way', async t => {
    const leave = new AbortController()
    const { base } = await serving(t, () => leave.abort())
    const outcome = await calling(t, base)(create, leave.signal)
    assert.equal(classOf(outcome), 'unclear')
    assert.match(outcome.is === 'unclear' ? outcome.why : '', /our own stop/)
  })
})

describe('where the status alone tells, a 2xx is answered whatever its body is', { timeout: 60_000 }, () => {
  const bodies = ['answers with 100 kB', 'answers with 100 kB in chunks', 'resets in the middle of the answer'] as const
  for (const what of [...bodies, 'closes in the middle of a chunk'] as const) {
    test(`the other side ${what}`, async t => {
      const { base, received } = await serving(t, afterReading[what]!)
      const outcome = await calling(t, base)({ ...create, statusAlone: true }, patient)
      assert.deepEqual([outcome.is, outcome.is === 'answered' && outcome.status], ['answered', 200])
      assert.equal(received.length, 1)
    })
  }

  test('the other side lets its body drip', async t => {
    const { base, sockets } = await serving(t, forEver['lets its body drip']!)
    assert.equal(classOf(await calling(t, base)({ ...create, statusAlone: true }, impatient)), 'answered')
    while (sockets.size > 0) await new Promise(resolve => setTimeout(resolve, 20))
  })

  test('but a 5xx is as unclear as ever', async t => {
    const { base } = await serving(t, response => response.writeHead(500).end('x'.repeat(100_000)))
    assert.equal(classOf(await calling(t, base)({ ...create, statusAlone: true }, patient)), 'unclear')
  })
})
