import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
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

export interface CertificateOptions {
  readonly kind: 'ec' | 'rsa'
  readonly name: string
  readonly from?: Date
  readonly to?: Date
}

const DAY = 24 * 60 * 60 * 1_000
export const inDays = (days: number): Date => new Date(Date.now() + days * DAY)

/**
 * A new key and a certificate signed by itself (RFC 5280 §4.1), for localhost, 127.0.0.1 and 0.0.0.0, as PEM. Node can read
 * certificates but make none, and these few lines of DER are less than a library.
 */
export function selfSigned({ kind, name, from = inDays(-1), to = inDays(90) }: CertificateOptions) {
  const { publicKey, privateKey } =
    kind === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
      : generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const algorithm = kind === 'ec' ? sequence(oid('2a8648ce3d040302')) : sequence(oid('2a864886f70d01010b'), der(5))
  const who = sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(name)))))
  const names = sequence(
    der(0x82, Buffer.from('localhost')),
    ...[
      [127, 0, 0, 1],
      [0, 0, 0, 0],
    ].map(ip => der(0x87, Buffer.from(ip))),
  )
  const body = sequence(
    der(0xa0, der(2, Buffer.from([2]))),
    der(2, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    who,
    sequence(time(from), time(to)),
    who,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(sequence(oid('551d11'), der(4, names)))),
  )
  const signature = der(3, Buffer.from([0]), sign('sha256', body, privateKey))
  const lines = sequence(body, algorithm, signature).toString('base64').replace(/.{64}/g, '$&\n')
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

function der(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const head = length < 0x80 ? [tag, length] : [tag, 0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), content])
}

const sequence = (...parts: Buffer[]) => der(0x30, ...parts)
const oid = (hex: string) => der(6, Buffer.from(hex, 'hex'))
/** GeneralizedTime. */
const time = (date: Date) => der(0x18, Buffer.from(`${date.toISOString().replace(/\D/g, '').slice(0, 14)}Z`))
