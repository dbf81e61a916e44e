import { createHmac } from 'node:crypto'
import { emailKey } from '../signup/contact.ts'
import type { Tx } from './database.ts'
import { secretOf, sharedSecret } from './secret.ts'

/** The name of the secret under which erased addresses are hashed. It is made at the first removal. */
export const ERASURE = 'erasure'

/**
 * What is kept of an erased address, so that older copies of the contact do not come back: HMAC-SHA-256 in hex. Without the
 * secret, or without the address, it says nothing.
 */
const hashOf = (secret: string, email: string): string =>
  createHmac('sha256', secret).update(emailKey(email)).digest('hex')

/** When each of these addresses was erased, by its key; those that were not are missing. */
export async function erasedAt(tx: Tx, emails: readonly string[]): Promise<ReadonlyMap<string, Date>> {
  const secret = await secretOf(tx, ERASURE)
  if (secret === undefined) return new Map()
  const keys = new Map(emails.map(email => [hashOf(secret, email), emailKey(email)] as const))
  const rows = await tx.all<{ hash: string; erased_at: number }>(
    `select hash, erased_at from erased where ${tx.dialect.among('hash', '$1')}`,
    [[...keys.keys()]],
  )
  return new Map(rows.map(({ hash, erased_at }) => [keys.get(hash)!, new Date(erased_at)]))
}

/** Remembers that an address was erased, at the earliest when its contact was added. */
export async function rememberErasure(tx: Tx, email: string, createdAt: number): Promise<void> {
  const hash = hashOf(await sharedSecret(tx, ERASURE), email)
  await tx.insert(
    'erased',
    [{ hash, erased_at: Math.max(tx.now, createdAt) }],
    'on conflict (hash) do update set erased_at = excluded.erased_at where erased.erased_at < excluded.erased_at',
  )
}

/** Contacts that are looked at in one step. */
const PAGE = 1_000

/**
 * Brings a list that was restored up to date, which a backup cannot be: those who were erased since are taken out, unless they
 * signed up again, and what waits to be delivered may have arrived. Returns how many were taken out.
 */
export async function reconcileRestored(tx: Tx): Promise<number> {
  let erased = 0
  for (let above = 0; ; ) {
    const page = await tx.all<{ number: number; email: string; email_key: string; created_at: number }>(
      'select number, email, email_key, created_at from contact where number > $1 order by number limit $2',
      [above, PAGE],
    )
    const times = await erasedAt(
      tx,
      page.map(({ email }) => email),
    )
    const gone = page.filter(({ email_key, created_at }) => (times.get(email_key)?.getTime() ?? -1) >= created_at)
    if (gone.length > 0)
      erased += await tx.run(`delete from contact where ${tx.dialect.among('number', '$1')}`, [
        gone.map(({ number }) => number),
      ])
    if (page.length < PAGE) break
    above = page.at(-1)!.number
  }
  await tx.run("update delivery set doubt = 1, token = null where state = 'waiting'")
  return erased
}
