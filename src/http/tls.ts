import { constants, createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext } from 'node:tls'
import type { Logger } from 'pino'
import { OperatorError } from '../config/operator.ts'

export interface CertificateFiles {
  /** PEM: the certificate and the chain above it. */
  readonly certFile: string
  /** PEM: the private key, without a passphrase. */
  readonly keyFile: string
}

/** A certificate and its key. */
export interface Pair {
  readonly cert: Buffer
  readonly key: Buffer
  readonly expires: Date
}

/** Milliseconds. Files are polled, since notifications miss changed symbolic links and replaced files. */
const POLL_INTERVAL = 1_000

/** @throws {OperatorError} when a file cannot be read, is not PEM, or the key does not belong to the certificate. */
export function readPair({ certFile, keyFile }: CertificateFiles): Pair {
  try {
    const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)]
    const leaf = new X509Certificate(cert)
    // OpenSSL accepts a certificate and a key of different kinds, and then fails every handshake.
    if (!leaf.checkPrivateKey(createPrivateKey(key))) throw new Error('the key does not belong to the certificate')
    createSecureContext({ cert, key })
    return { cert, key, expires: leaf.validToDate }
  } catch (error) {
    throw new OperatorError(`TLS_CERT_FILE and TLS_KEY_FILE cannot be used: ${(error as Error).message}`)
  }
}

/** Reads the pair again when one of the files has changed, and with `reload`. One that cannot be used changes nothing. */
export function watchPair(files: CertificateFiles, servers: readonly Server[], log: Logger) {
  const reload = () => {
    try {
      const { cert, key } = readPair(files)
      // For new connections; open ones stay.
      for (const server of servers) server.setSecureContext({ ...tlsOptions, cert, key })
      log.info('the TLS certificate was reloaded')
    } catch (error) {
      log.warn({ why: (error as Error).message }, 'the new TLS certificate cannot be used; the old one stays')
    }
  }
  const paths = [files.certFile, files.keyFile]
  for (const path of paths) watchFile(path, { interval: POLL_INTERVAL, persistent: false }, reload)
  return {
    reload,
    stop() {
      for (const path of paths) unwatchFile(path, reload)
    },
  }
}

/**
 * TLS 1.2 and 1.3, only with forward secrecy and authenticated encryption (RFC 9325 §3, §4), and without renegotiation,
 * which costs a client nothing and us a handshake.
 */
export const tlsOptions = {
  minVersion: 'TLSv1.2',
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  ciphers: 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:ECDHE+AESGCM:ECDHE+CHACHA20',
} as const
