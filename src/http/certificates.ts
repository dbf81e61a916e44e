import { readFileSync, unwatchFile, watchFile } from 'node:fs'
import { createSecureContext } from 'node:tls'
import { OperatorError } from '../waitlist/ports.ts'

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

/** Files are polled, since notifications miss changed symbolic links and replaced files. */
const LOOK_EVERY = 1_000
/** The two files are not replaced at the same instant. */
const SETTLE = 200

/** @throws when a file cannot be read, is not PEM, or the key does not belong to the certificate. */
export function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const pair = { cert: readFileSync(certFile), key: readFileSync(keyFile) }
  createSecureContext(pair)
  return pair
}

/** @throws {OperatorError} that names the settings. */
export function firstCertificate(files: CertificateFiles): Certificate {
  try {
    return readCertificate(files)
  } catch (error) {
    throw new OperatorError(`TLS_CERT_FILE and TLS_KEY_FILE cannot be used: ${(error as Error).message}`)
  }
}

export interface CertificateWatch {
  /** Reads the files again now. */
  reload(): void
  stop(): void
}

/**
 * Calls `use` with each new pair. For a pair that cannot be used it calls `reject`, and the old pair stays: a half-written
 * file must not stop a running service.
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
