import { copyFileSync, readFileSync } from 'node:fs'
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

/** A TLS connection, or the error that it was refused with. */
export function handshake({ baseUrl }: { baseUrl: string }, options: ConnectionOptions): Promise<TLSSocket | Error> {
  const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(baseUrl).port), ca, ...options })
  return new Promise(resolve => {
    // In TLS 1.3 and with ALPN a refusal may come after the client's own part is done.
    socket.once('secureConnect', () => setTimeout(resolve, 50, socket)).once('error', resolve)
  })
}
