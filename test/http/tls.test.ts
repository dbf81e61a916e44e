import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { copyFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { ConnectionOptions, TLSSocket } from 'node:tls'
import { OperatorError } from '../../src/config/operator.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, runProgram, until } from '../harness/program.ts'
import { send } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'
import { fixture, handshake, pairIn, startTls, usePair } from '../harness/tls.ts'

type Running = { readonly baseUrl: string }

const get = (baseUrl: string, path: string) =>
  send(baseUrl, [`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close'])

async function connected(service: Running, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = await handshake(service, options)
  assert.ok(!(socket instanceof Error), String(socket))
  return socket
}

async function refused(service: Running, options: ConnectionOptions): Promise<string> {
  const error = (await handshake(service, options)) as NodeJS.ErrnoException
  return String(error.code)
}

async function certificateOf(service: Running): Promise<string> {
  const socket = await connected(service)
  const { subject } = socket.getPeerX509Certificate()!
  socket.destroy()
  return subject
}

/** TLS 1.1, and ciphers without forward secrecy or authentication, are refused; TLS 1.2 and 1.3 are not. */
const assertModernOnly = async (service: Running) => {
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const
  assert.equal(await refused(service, old), 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
  for (const ciphers of ['ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384', 'AES128-GCM-SHA256']) {
    const weak = { maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` } as const
    assert.match(await refused(service, weak), /HANDSHAKE_FAILURE/, ciphers)
  }
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = await connected(service, { minVersion: version, maxVersion: version })
    assert.equal(socket.getProtocol(), version)
    socket.destroy()
  }
}

describe('over TLS', { concurrency: true }, () => {
  test('C-99: HTTP/1.1 is the one protocol; who offers only others hears so in the handshake', async t => {
    const service = await startTls(t)
    for (const [ALPNProtocols, expected] of [
      [['h2', 'http/1.1'], 'http/1.1'],
      [[], false],
    ] as const) {
      const socket = await connected(service, { ALPNProtocols: [...ALPNProtocols] })
      assert.equal(socket.alpnProtocol, expected)
      socket.destroy()
    }
    // RFC 7301 §3.2
    assert.equal(await refused(service, { ALPNProtocols: ['h2'] }), 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL')
  })

  test('C-98: TLS 1.1 and ciphers without forward secrecy or authentication are refused', async t => {
    await assertModernOnly(await startTls(t))
  })

  test('C-98: a client that renegotiates is cut off', async t => {
    const socket = await connected(await startTls(t), { maxVersion: 'TLSv1.2' })
    const closed = new Promise(resolve =>
      socket
        .on('error', () => {})
        .resume()
        .once('close', () => resolve('cut off')),
    )
    const renegotiated = new Promise(resolve => socket.renegotiate({}, error => error ?? resolve('renegotiated')))
    // It would begin with the next bytes.
    socket.write('GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n')
    assert.equal(await Promise.race([closed, renegotiated]), 'cut off')
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
    assert.equal((await get(baseUrl, '/api/health')).status, 200)
  })

  test('HSTS is on every answer over TLS, for this host alone', async t => {
    const { baseUrl } = await startTls(t)
    assert.match(baseUrl, /^https:/)
    for (const path of ['/', '/api/health', '/docs/api', '/nothing']) {
      const answer = await get(baseUrl, path)
      assert.equal(answer.headers.get('strict-transport-security'), 'max-age=31536000', path)
    }
  })
})

describe('the certificate', { concurrency: true }, () => {
  test('C-101: is reloaded when its files change; a bad pair keeps the old one and is logged', async t => {
    const files = pairIn(t)
    const service = await startService(t, files.env)
    assert.equal(await certificateOf(service), 'CN=first')
    const open = await connected(service)

    usePair(files, 'second')
    await until(async () => (await certificateOf(service)) === 'CN=second')
    open.write('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.match(String(await once(open, 'data')), /^HTTP\/1\.1 200 /, 'open connections stay')
    open.destroy()
    await assertModernOnly(service)

    copyFileSync(fixture('first.crt'), files.cert)
    service.reload()
    const complaint = service.logged.findLast(({ msg }) => /the old one stays/.test(String(msg)))
    assert.match(String(complaint?.why), /the key does not belong to the certificate/)
    assert.equal(await certificateOf(service), 'CN=second')
  })

  test('SIGHUP reloads it at once', async t => {
    const { env } = pairIn(t)
    const tls = await runProgram(t, { PORT: '0', HOST: '127.0.0.1', ...env }, { cwd: temporaryFolder(t) })
    tls.process.kill('SIGHUP')
    await until(() => logOf(tls).some(({ msg }) => msg === 'the TLS certificate was reloaded'))
    assert.equal(await certificateOf(tls), 'CN=first')
  })

  test('a pair that cannot be used keeps the service from starting, in a sentence that names the settings', async t => {
    const { cert, key } = pairIn(t)
    const folder = temporaryFolder(t)
    const [nonsense, rsa] = [join(folder, 'nonsense'), join(folder, 'rsa')]
    writeFileSync(nonsense, 'nonsense')
    writeFileSync(
      rsa,
      generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    )
    for (const [TLS_CERT_FILE, TLS_KEY_FILE] of [
      [cert, fixture('second.key').pathname],
      [cert, rsa],
      [join(folder, 'missing'), key],
      [cert, nonsense],
      [key, cert],
    ] as [string, string][]) {
      await assert.rejects(startService(t, { TLS_CERT_FILE, TLS_KEY_FILE }), (error: Error) => {
        assert.ok(error instanceof OperatorError, String(error))
        assert.match(error.message, /^TLS_CERT_FILE and TLS_KEY_FILE cannot be used: /)
        assert.doesNotMatch(error.message, /BEGIN|PRIVATE/)
        return true
      })
    }
  })
})
