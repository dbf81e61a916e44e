import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { CannotOpen } from '../waitlist/ports.ts'

export interface CertificateFiles {
  /** PEM: the certificate and the chain above it. */
  readonly certFile: string
  /** PEM: the private key, without a passphrase. */
  readonly keyFile: string
}

export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
}

/** Polling follows what a notification misses: a symbolic link that now points elsewhere, a file that was replaced. */
const LOOK_EVERY = 1_000
/** Two files are not replaced at the same instant. */
const SETTLE = 200

/** @throws when a file cannot be read, is no PEM, or the key does not belong to the certificate. */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  createSecureContext(pair)
  return pair
}

/** @throws {CannotOpen} naming the settings. */
export function firstCertificate(files: CertificateFiles): Certificate {
  try {
    return readCertificate(files)
  } catch (error) {
    throw new CannotOpen(`TLS_CERT_FILE and TLS_KEY_FILE cannot be used: ${(error as Error).message}`)
  }
}

export interface CertificateWatch {
  /** Reads the files again now. */
  reload(): void
  stop(): void
}

/**
 * Calls `use` with each new pair. A pair that cannot be used is told to `reject`, and the old one stays: a half-written
 * file must not end a running service.
 */
export function watchCertificate(
  files: CertificateFiles,
  use: (certificate: Certificate) => void,
  reject: (error: Error) => void,
): CertificateWatch {
  let timer: NodeJS.Timeout | undefined
  const reload = () => {
    clearTimeout(timer)
    try {
      use(readCertificate(files))
    } catch (error) {
      reject(error as Error)
    }
  }
  const changed = () => {
    clearTimeout(timer)
    timer = setTimeout(reload, SETTLE)
  }
  const watched = [files.certFile, files.keyFile]
  for (const file of watched) watchFile(file, { interval: LOOK_EVERY, persistent: false }, changed)
  return {
    reload,
    stop() {
      clearTimeout(timer)
      for (const file of watched) unwatchFile(file, changed)
    },
  }
}
