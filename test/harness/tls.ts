import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, readFileSync } from 'node:fs'
import { request as requestHttps } from 'node:https'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { temporaryFolder } from './folder.ts'
import { startService } from './service.ts'

export const fixture = (name: string) => new URL(`../fixtures/tls/${name}`, import.meta.url)
export const ca = ['first.crt', 'second.crt'].map(name => readFileSync(fixture(name)))

export type Pair = 'first' | 'second'
export function usePair({ cert, key }: { cert: string; key: string }, pair: Pair): void {
  copyFileSync(fixture(`${pair}.crt`), cert)
  copyFileSync(fixture(`${pair}.key`), key)
}

export function pairIn(t: TestContext): { cert: string; key: string; env: Record<string, string> } {
  const folder = temporaryFolder(t)
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  usePair(files, 'first')
  return { ...files, env: { TLS_CERT_FILE: files.cert, TLS_KEY_FILE: files.key } }
}

export const startTls = (t: TestContext, env: Record<string, string> = {}) =>
  startService(t, { ...pairIn(t).env, ...env })

export interface Received {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

/** One request over HTTP/1.1 and TLS, on a connection of its own. */
export async function http1(baseUrl: string, path: string, method = 'GET', fields = {}, body = ''): Promise<Received> {
  const request = requestHttps(baseUrl + path, { method, ca, agent: false, headers: fields }).end(body)
  const [response] = await once(request, 'response')
  assert.equal(response.httpVersion, '1.1')
  let text = ''
  for await (const chunk of response) text += chunk
  return { status: response.statusCode, headers: headersOf(response.headers), body: text }
}

export const json = { 'content-type': 'application/json' }
export const someone = (name: string) => JSON.stringify({ name, email: `${name}@example.com` })

/** A TLS connection, or the error that it was refused with. */
export function handshake({ baseUrl }: { baseUrl: string }, options: ConnectionOptions): Promise<TLSSocket | Error> {
  const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(baseUrl).port), ca, ...options })
  return new Promise(resolve => {
    // In TLS 1.3 and with ALPN a refusal may come after the client's own part is done.
    socket.once('secureConnect', () => setTimeout(resolve, 50, socket)).once('error', resolve)
  })
}

export async function certificateOf(service: { baseUrl: string }): Promise<string> {
  const socket = await handshake(service, {})
  assert.ok(!(socket instanceof Error), String(socket))
  const { subject } = socket.getPeerX509Certificate()!
  socket.destroy()
  return subject
}

export const headersOf = (fields: object): Headers => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(fields)) headers.set(name, String(value))
  return headers
}

/** TLS 1.1, and ciphers without forward secrecy or authentication, are refused; TLS 1.2 and 1.3 are not. */
export const assertModernOnly = async (service: { baseUrl: string }) => {
  const anything = 'DEFAULT@SECLEVEL=0'
  const old = await handshake(service, { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: anything })
  assert.equal((old as NodeJS.ErrnoException).code, 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION')
  for (const ciphers of ['ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES256-SHA384', 'AES128-GCM-SHA256']) {
    const weak = await handshake(service, { maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` })
    assert.match(String((weak as NodeJS.ErrnoException).code), /HANDSHAKE_FAILURE/, ciphers)
  }
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = await handshake(service, { minVersion: version, maxVersion: version })
    assert.ok(!(socket instanceof Error), String(socket))
    assert.equal(socket.getProtocol(), version)
    socket.destroy()
  }
}

/** A client that asks to renegotiate (TLS 1.2) is refused, and its connection ends instead of hanging. */
export const assertNoRenegotiation = async (service: { baseUrl: string }) => {
  const socket = await handshake(service, { maxVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] })
  assert.ok(!(socket instanceof Error), String(socket))
  assert.equal(socket.alpnProtocol, 'http/1.1')
  const ended = new Promise(resolve =>
    socket
      .on('error', () => {})
      .resume()
      .once('close', () => resolve('cut off')),
  )
  const renegotiated = new Promise(resolve => socket.renegotiate({}, error => error ?? resolve('renegotiated')))
  // It would begin with the next bytes.
  socket.write('GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n')
  assert.equal(await Promise.race([ended, renegotiated]), 'cut off')
}
