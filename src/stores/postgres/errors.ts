import { StoreUnavailable } from '../../waitlist/ports.ts'

/** SQLSTATE, or a code of Node's; empty for what `pg` says itself (https://postgresql.org/docs/current/errcodes-appendix.html). */
const codeOf = (error: unknown): string => String((error as { code?: string }).code ?? '')
const messageOf = (error: unknown): string => (error as Error).message

/** What `pg` and Node say in words that lead nowhere, and what to say in their place. */
const inOtherWords: readonly (readonly [said: RegExp, meant: string])[] = [
  [/password must be a/, 'the server asks for a password, but DATABASE_URL has none and PGPASSWORD is not set'],
  [
    /unable to verify the first certificate|self-signed certificate|issuer certificate/,
    'its certificate is signed by an authority that is not known here: name the file of that one with sslrootcert',
  ],
  [/due to connection timeout|timeout exceeded when trying to connect/, 'nobody answers there, or no PostgreSQL does'],
]

/** Why something did not work, for people. */
export function reasonOf(error: unknown): string {
  const message = messageOf(error)
  return inOtherWords.find(([said]) => said.test(message))?.[1] ?? message
}

/** What `pg` says of a connection without giving it a code. */
const connectionLost = /timeout|terminated|not queryable|on the pool|establishing an SSL/i

/** Of the network. Others of Node's are about files, such as the certificate that `sslrootcert` names. */
const network = 'EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EADDRNOTAVAIL|ECONN[A-Z]+|E(?:HOST|NET)[A-Z]+'

/**
 * 40001 serialization failure, 40P01 deadlock, 55P03 lock timeout, 57014 statement timeout, 57P01-3 shutdown and start-up,
 * 25006 read only (a standby after a failover), 53300 too many connections, 0A000 a plan from before an upgrade of the
 * tables, 08… connection, also what PgBouncer says.
 */
const passing = new RegExp(`^(?:40001|40P01|55P03|57014|57P0[1-3]|25006|53300|0A000|08.{3}|${network})$`)

/** After these the server did nothing: it said so. After any other an attempt may have taken effect. */
const withoutEffect = /^(?:40001|40P01|55P03|57014|57P03|25006|53300|0A000)$/

/** The connection is of no use any more, and others of the same age hardly are. */
const stale = new RegExp(`^(?:57P0[1-3]|25006|08.{3}|${network})$`)

/** Data, constraint and syntax errors: bugs of ours. A table or a right that was taken away is none. */
const bug = /^(?:22|23|42(?!501|P01)).*$/

/** 26000, 42P05: another session has the prepared statement, or this one has it already. Nothing was run. */
export const isUnprepared = (error: unknown): boolean => /^(?:26000|42P05)$/.test(codeOf(error))

/** Not answered in time, as `pg` says it. */
export const isTimeout = (error: unknown): boolean => /read timeout/i.test(messageOf(error))

/** Whether to try again makes sense. */
export const passes = (error: unknown): boolean => {
  const code = codeOf(error)
  return code === '' ? connectionLost.test(messageOf(error)) : passing.test(code)
}

export const hadNoEffect = (error: unknown): boolean => withoutEffect.test(codeOf(error))

export const isStale = (error: unknown): boolean => {
  const code = codeOf(error)
  return code === '' ? connectionLost.test(messageOf(error)) : stale.test(code)
}

/**
 * What is told to whoever asked the store: an outage, with its code, unless it is a bug. What PostgreSQL says beside its
 * message may have a name and an address in it, so that stays here.
 */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error
  const code = codeOf(error)
  if (code === '' && !connectionLost.test(messageOf(error))) return error
  if (bug.test(code)) return new Error(`PostgreSQL: ${messageOf(error)} (${code})`)
  const unavailable = new StoreUnavailable(`PostgreSQL: ${reasonOf(error)}${code === '' ? '' : ` (${code})`}`)
  return code === '' ? unavailable : Object.assign(unavailable, { code })
}
