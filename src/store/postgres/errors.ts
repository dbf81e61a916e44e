import { StoreUnavailable } from '../database.ts'

/** SQLSTATE (https://postgresql.org/docs/current/errcodes-appendix.html) or a code of Node's; empty for errors of `pg`. */
const codeOf = (error: unknown): string => String((error as { code?: string }).code ?? '')
const messageOf = (error: unknown): string => (error as Error).message

/** Unhelpful messages of `pg` and Node, with better ones. */
const inOtherWords: readonly (readonly [said: RegExp, meant: string])[] = [
  [/password must be a/, 'the server asks for a password, but DATABASE_URL has none and PGPASSWORD is not set'],
  [
    /unable to verify the first certificate|self-signed certificate|issuer certificate/,
    'its certificate is signed by an unknown authority: name the file of that authority with sslrootcert',
  ],
  [
    /due to connection timeout|timeout exceeded when trying to connect/,
    'nothing answers there, or it is not PostgreSQL',
  ],
]

/** Why something failed, for people. */
export function reasonOf(error: unknown): string {
  const message = messageOf(error)
  return inOtherWords.find(([said]) => said.test(message))?.[1] ?? message
}

/** Connection errors of `pg` that have no code. */
const connectionLost = /timeout|terminated|not queryable|on the pool|establishing an SSL/i

/** Node's network errors. Its other codes are about files, such as the certificate that `sslrootcert` names. */
const network = 'EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EADDRNOTAVAIL|ECONN[A-Z]+|E(?:HOST|NET)[A-Z]+'

/**
 * 25P03 silent for too long within a transaction, 40001 serialization failure, 40P01 deadlock, 55P03 lock timeout, 57014
 * statement timeout, 57P01-3 shutdown and start-up, 25006 read only (a standby after a failover), 53300 too many
 * connections, 0A000 a plan from before an upgrade of the tables, 08… connection, also what PgBouncer says.
 */
const passing = new RegExp(`^(?:25P03|40001|40P01|55P03|57014|57P0[1-3]|25006|53300|0A000|08.{3}|${network})$`)

/** With these the server says that nothing was done. After any other, the statement may have taken effect. */
const withoutEffect = /^(?:25P03|40001|40P01|55P03|57014|57P03|25006|53300|0A000)$/

/** The connection is lost, and most likely others of the same age too. */
const stale = new RegExp(`^(?:57P0[1-3]|25006|08.{3}|${network})$`)

/** Data, constraint and syntax errors are our bugs. A missing table or right is not. */
const bug = /^(?:22|23|42(?!501|P01)).*$/

/** Whether trying again makes sense. */
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
 * The error for the store's caller: an outage, with its code, unless it is a bug. The details that PostgreSQL adds to its
 * message are dropped, since they may contain a name and an address.
 */
export function asUnavailable(error: unknown): unknown {
  if (error instanceof StoreUnavailable) return error
  const code = codeOf(error)
  if (code === '' && !connectionLost.test(messageOf(error))) return error
  if (bug.test(code)) return new Error(`PostgreSQL: ${messageOf(error)} (${code})`)
  const unavailable = new StoreUnavailable(`PostgreSQL: ${reasonOf(error)}${code === '' ? '' : ` (${code})`}`)
  return code === '' ? unavailable : Object.assign(unavailable, { code })
}
