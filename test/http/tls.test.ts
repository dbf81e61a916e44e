import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { startService } from '../harness/service.ts'
import { assertModernOnly, assertNoRenegotiation, handshake, http1, json, someone, startTls } from '../harness/tls.ts'

describe('over TLS', { concurrency: true, timeout: 60_000 }, () => {
  test('C-99: HTTP/1.1 is the one protocol; who offers only others hears so in the handshake', async t => {
    const service = await startTls(t)
    assert.match(service.baseUrl, /^https:/)
    for (const [ALPNProtocols, expected] of [
      [['h2', 'http/1.1'], 'http/1.1'],
      [['http/1.1'], 'http/1.1'],
      [[], false],
    ] as const) {
      const socket = await handshake(service, { ALPNProtocols: [...ALPNProtocols] })
      assert.ok(!(socket instanceof Error), String(socket))
      assert.equal(socket.alpnProtocol, expected)
      socket.destroy()
    }
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      for (const offered of ['h2', 'spdy/3']) {
        const refused = await handshake(service, { ALPNProtocols: [offered], maxVersion })
        // RFC 7301 §3.2
        assert.equal((refused as NodeJS.ErrnoException).code, 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', offered)
      }
    }

    const answer = await http1(service.baseUrl, '/api/waitlist', 'POST', json, someone('one'))
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('set-cookie')!, /^__Host-waitlist=1; .*Secure/)
  })

  test('C-98: TLS 1.1 and ciphers without forward secrecy or authentication are refused', async t => {
    await assertModernOnly(await startTls(t))
  })

  test('C-98: a client that renegotiates is cut off', async t => {
    await assertNoRenegotiation(await startTls(t))
  })

  test('C-102: plain HTTP on the TLS port gets no answer, and the connection is closed', async t => {
    const { baseUrl } = await startTls(t)
    const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', chunk => {
      received += chunk
    })
    socket.on('error', () => {})
    socket.write('GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'close')
    assert.doesNotMatch(received, /HTTP|\{/)
    assert.equal((await http1(baseUrl, '/api/health')).status, 200)
  })

  test('HSTS is on every answer over TLS, for this host alone, and on none in the clear', async t => {
    const tls = await startTls(t)
    for (const path of ['/', '/api/health', '/api/waitlist', '/docs/api', '/nothing']) {
      const answer = await http1(tls.baseUrl, path)
      assert.equal(answer.headers.get('strict-transport-security'), 'max-age=31536000', path)
    }
    const clear = await startService(t)
    const plain = await fetch(`${clear.baseUrl}/api/health`)
    assert.equal(plain.headers.get('strict-transport-security'), null)
    await plain.text()
  })
})
