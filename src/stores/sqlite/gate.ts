import type { DatabaseSync } from 'node:sqlite'
import { ALL, type HoldRules, holdReasonOf, newcomerOf } from '../../waitlist/hold.ts'
import { emailKey } from '../../waitlist/signup.ts'
import { type Credentials, type Entry, SPENT_AFTER, SWEPT } from '../gate.ts'

/** Prepares the statements of the gate, all for use inside an open transaction. */
export function gating(database: DatabaseSync, rules: HoldRules) {
  const { window } = rules
  const claim = database.prepare(
    'insert into spent (nonce, claimant, expires_at) values (?, ?, ?) on conflict do nothing',
  )
  const claimantOf = database.prepare('select claimant from spent where nonce = ?')
  const isKnown = database.prepare('select 1 from contact where email_key = ?')
  const hasMailbox = database.prepare('select 1 from contact where mailbox = ? limit 1')
  const oldest = database.prepare(
    'select number from arrival where scope = ? and number < ? and at <= ? order by at limit 1',
  )
  const ahead = database.prepare(
    'select number from arrival where scope = ? and number < ? and at > ? order by at desc limit 1',
  )
  const last = database.prepare(
    'select coalesce(max(number), -1) as number from arrival where scope = ? and number < ?',
  )
  const count = database.prepare('select count(*) as count from arrival where scope = ?')
  const arrive = database.prepare(
    'insert into arrival (scope, number, at) values (?, ?, ?) on conflict (scope, number) do update set at = excluded.at',
  )
  const sweepSpent = database.prepare(
    'delete from spent where nonce in (select nonce from spent where expires_at < ? order by expires_at limit ?)',
  )
  const sweepDomains = database.prepare(
    'delete from arrival where (scope, number) in' +
      ` (select scope, number from arrival where at <= ? and scope <> '${ALL}' order by at limit ?)`,
  )

  /**
   * The row to use for an arrival; undefined: too many were let in. What lies ahead was stored before the clock was set
   * back. Of the limit for all, rows are never swept, so their numbers count them; those of a limit that was higher are
   * ignored. Domains have few rows, which are counted.
   */
  function roomIn(scope: string, most: number, now: number): number | undefined {
    const end = scope === ALL ? most : Number.MAX_SAFE_INTEGER
    const used = oldest.get(scope, end, now - window) ?? ahead.get(scope, end, now)
    if (used !== undefined) return used.number as number
    const next = (last.get(scope, end)!.number as number) + 1
    const taken = scope === ALL ? next : (count.get(scope)!.count as number)
    return taken < most ? next : undefined
  }

  return {
    /** `added`: how many may come in this batch. */
    sweep(added: number, now: number): void {
      sweepSpent.run(now - SPENT_AFTER, added + SWEPT)
      sweepDomains.run(now - window, added + SWEPT)
    },
    /** How a signup is stored, if it is new. Claims its proof; `spent`: somebody else did. */
    entryOf(name: string, email: string, credentials: Credentials | null | undefined, now: number): Entry | 'spent' {
      const { proof, unverified } = credentials ?? {}
      if (proof !== undefined && claim.run(proof.nonce, proof.claimant, proof.expires).changes === 0) {
        if (claimantOf.get(proof.nonce)?.claimant !== proof.claimant) return 'spent'
      }
      const newcomer = newcomerOf({ name, email, unverified }, rules)
      const { mailbox, scopes } = newcomer
      if (isKnown.get(emailKey(email)) !== undefined) return { heldFor: null, mailbox }
      const heldFor = holdReasonOf(newcomer, {
        knows: mailbox => hasMailbox.get(mailbox) !== undefined,
        hasRoom: (scope, most) => roomIn(scope, most, now) !== undefined,
      })
      if (heldFor === null) {
        for (const [scope, most] of scopes) arrive.run(scope, roomIn(scope, most, now)!, now)
      }
      return { heldFor, mailbox }
    },
  }
}
