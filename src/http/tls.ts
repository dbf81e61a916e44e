import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync, statSync, unwatchFile, watchFile } from 'node:fs'
import { OperatorError } from '../waitlist/ports/log.ts'

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
const POLL_INTERVAL = 1_000
/** A file may be written in several steps. */
const DEBOUNCE = 200
/** How long one of the two files may be newer than the other before anybody is told. */
const PATIENCE = 30_000

const HOUR = 3_600_000
export const DAY = 24 * HOUR
/** Certificates are usually renewed a month before they expire. */
const EXPIRES_SOON = 14 * DAY

/** @throws when a file cannot be read, is not PEM, or the key does not belong to the certificate. */
function readCertificate({ certFile, keyFile }: CertificateFiles): Certificate {
  const pair = { cert: readPem('TLS_CERT_FILE', certFile), key: readPem('TLS_KEY_FILE', keyFile) }
  if (isKey(pair.cert) && pair.key.includes(CERTIFICATE)) {
    throw new Error('TLS_CERT_FILE holds a private key, and TLS_KEY_FILE a certificate: swap them')
  }
  const leaf = parsed('TLS_CERT_FILE is not a certificate in PEM', () => new X509Certificate(pair.cert))
  const key = parsed('TLS_KEY_FILE is not a private key in PEM without a passphrase', () => createPrivateKey(pair.key))
  // OpenSSL accepts a certificate and a key of different kinds, and then fails every handshake.
  if (!leaf.checkPrivateKey(key)) {
    const kinds = `${leaf.publicKey.asymmetricKeyType} and ${key.asymmetricKeyType}`
    throw new Error(`the certificate in TLS_CERT_FILE and the key in TLS_KEY_FILE do not belong together (${kinds})`)
  }
  // Not imported, since a service without a certificate has no use for it.
  process.getBuiltinModule('node:tls').createSecureContext(pair)
  return pair
}

/** Anything else, such as a device, may have no end. */
function readPem(setting: string, path: string): Buffer {
  if (!statSync(path).isFile()) throw new Error(`${setting} is not a file: ${path}`)
  return readFileSync(path)
}

const CERTIFICATE = '-----BEGIN CERTIFICATE-----'

/** A key alone: some keep both in one file. */
const isKey = (pem: Buffer): boolean =>
  !pem.includes(CERTIFICATE) && /-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(pem.toString('latin1'))

function parsed<Result>(otherwise: string, parse: () => Result): Result {
  try {
    return parse()
  } catch (error) {
    throw new Error(`${otherwise}: ${(error as Error).message}`)
  }
}

/** @throws {OperatorError} that names the settings. */
export function firstCertificate(files: CertificateFiles): Certificate {
  try {
    return readCertificate(files)
  } catch (error) {
    throw new OperatorError(`TLS_CERT_FILE and TLS_KEY_FILE cannot be used: ${(error as Error).message}`)
  }
}

/** Milliseconds until a certificate expires. `now`: milliseconds, as `Date.now()`. */
export const validFor = ({ cert }: Certificate, now = Date.now()): number =>
  new X509Certificate(cert).validToDate.getTime() - now

/**
 * Null unless the certificate has expired or expires within 14 days. `sentence`: when that is, how many days from now or ago,
 * and what to do. `now` as for `validFor`.
 */
export function expiryOf(certificate: Certificate, now = Date.now()) {
  const left = validFor(certificate, now)
  if (left > EXPIRES_SOON) return null
  const end = new Date(now + left)
  const days = Math.floor(Math.abs(left) / DAY)
  const count = days === 0 ? 'less than a day' : `${days} ${days === 1 ? 'day' : 'days'}`
  const isExpired = left <= 0
  const what = 'The certificate in TLS_CERT_FILE'
  const sentence = isExpired
    ? `${what} expired on ${end.toISOString()}, ${count} ago, and clients refuse it. Renew it.`
    : `${what} expires on ${end.toISOString()}, in ${count}. Renew it.`
  return { isExpired, sentence }
}

export interface CertificateListener {
  /** There is a new pair. */
  use(certificate: Certificate): void
  /** The files were changed and cannot be used. The old pair stays. */
  reject(error: Error): void
  /** The certificate in use has expired or soon will: told at once, with each new pair, and then once a day. */
  warn(sentence: string): void
}

/**
 * Watches over the pair in use, which begins as `first`. New files are taken as soon as they fit each other: while one of
 * them is still to come, the old pair stays, and after `patience` milliseconds that is told.
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Certificate,
  { use, reject, warn }: CertificateListener,
  patience = PATIENCE,
) {
  let inUse = first
  let told: string | undefined
  let settling: NodeJS.Timeout | undefined
  let waiting: NodeJS.Timeout | undefined

  const reload = (otherwise: (error: Error) => void) => {
    clearTimeout(settling)
    try {
      const pair = readCertificate(files)
      use(pair)
      inUse = pair
    } catch (error) {
      otherwise(error as Error)
      return
    }
    clearTimeout(waiting)
    waiting = undefined
    told = undefined
    remind()
  }
  const waitForTheOther = () => {
    waiting ??= setTimeout(() => {
      waiting = undefined
      reload(reject)
    }, patience)
  }
  const changed = () => {
    clearTimeout(settling)
    settling = setTimeout(reload, DEBOUNCE, waitForTheOther)
  }
  // The sentence changes once a day. Looking more often finds a clock that jumped.
  const remind = () => {
    const sentence = expiryOf(inUse)?.sentence
    if (sentence !== undefined && sentence !== told) warn(sentence)
    told = sentence
  }

  const watched = [files.certFile, files.keyFile]
  for (const file of watched) watchFile(file, { interval: POLL_INTERVAL, persistent: false }, changed)
  const reminding = setInterval(remind, HOUR).unref()
  remind()
  return {
    /** Reads the files again now. */
    reload: () => reload(reject),
    stop() {
      for (const timer of [settling, waiting, reminding]) clearTimeout(timer)
      for (const file of watched) unwatchFile(file, changed)
    },
  }
}
