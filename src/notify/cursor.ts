import { randomUUID } from 'node:crypto'
import type { Tx } from '../store/database.ts'
import { LEASE } from '../store/outbox.ts'

/** How far each channel was told who joined and was invited: one row for a channel, and none for a contact. */

/** Those who joined and were invited since the last message, leased to the holder of the token. */
export interface Digest {
  readonly channel: string
  readonly token: string
  readonly joined: number
  readonly invited: number
  /** Whether an earlier message may have counted some of them. */
  readonly doubt: boolean
  /** Milliseconds since 1970: it counts those until then. */
  readonly until: number
}

/**
 * Milliseconds that a digest ends before now: longer than a transaction lasts, since one that is about to commit has events
 * with the time at which it began.
 */
export const LAG = 10_000

/** A channel counts only those who come from now on. */
export const openChannel = (tx: Tx, channel: string): Promise<void> =>
  tx.insert(
    'channel',
    [{ name: channel, told_until: tx.now - LAG, next_at: tx.now, token: null }],
    'on conflict (name) do nothing',
  )

/**
 * Takes the channel's turn, if it is due and there is something to tell. Of several instances one gets it. A number: so many
 * milliseconds must pass first. Null: nobody joined and nobody was invited.
 */
export async function claimDigest(tx: Tx, channel: string): Promise<Digest | number | null> {
  const [row] = await tx.all<{ told_until: number; next_at: number; token: string | null }>(
    `select told_until, next_at, token from channel where name = $1 ${tx.dialect.forUpdate}`,
    [channel],
  )
  if (row === undefined) return null
  if (row.next_at > tx.now) return row.next_at - tx.now
  const until = tx.now - LAG
  const [counts] = await tx.all<{ joined: number; invited: number }>(
    'select (select count(*) from contact where event_at > $1 and event_at <= $2) as joined,' +
      ' (select count(*) from contact where invited_at > $1 and invited_at <= $2 and invite_name is not null) as invited',
    [row.told_until, until],
  )
  const { joined, invited } = counts!
  if (joined + invited === 0) return null
  const token = randomUUID()
  await tx.run('update channel set token = $2, next_at = $3 where name = $1', [channel, token, tx.now + LEASE])
  return { channel, token, joined, invited, doubt: row.token !== null, until }
}

/**
 * Ends an attempt. Without `until` the digest is not told yet: the next one has its people again, after `wait` milliseconds.
 * False: another instance took over the lease, and nothing was changed.
 */
export async function settleDigest(
  tx: Tx,
  { channel, token }: Digest,
  { until, wait, doubt }: { readonly until: number | null; readonly wait: number; readonly doubt: boolean },
): Promise<boolean> {
  const changed = await tx.run(
    'update channel set told_until = coalesce($3, told_until), next_at = $4,' +
      ' token = case when $5 = 1 then token end where name = $1 and token = $2',
    [channel, token, until, tx.now + Math.round(wait), doubt ? 1 : 0],
  )
  return changed > 0 || tx.again
}
