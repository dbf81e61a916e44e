import type { DatabaseSync } from 'node:sqlite'
import type { HoldReason } from '../../waitlist/rules/contact.ts'
import { candidateOf, type HoldRules, holdReasonOf } from '../../waitlist/rules/hold.ts'
import { emailKey } from '../../waitlist/rules/signup.ts'
import { type Credentials, SPENT_AFTER, SWEPT } from '../gate.ts'

/** Prepares the statements of the gate, all for use inside an open transaction. */
export function gating(database: DatabaseSync, rules: HoldRules) {
  const { above, window } = rules
  const claim = database.prepare(
    'insert into spent (nonce, claimant, expires_at) values (?, ?, ?) on conflict do nothing',
  )
  const claimantOf = database.prepare('select claimant from spent where nonce = ?')
  const isKnown = database.prepare('select 1 from contact where email_key = ?')
  const hasMailbox = database.prepare('select 1 from contact where mailbox = ? limit 1')
  const first = database.prepare('select min(number) as number from arrival')
  const lastUntil = database.prepare('select number from arrival where at <= ? order by at desc, number desc limit 1')
  const arrive = database.prepare(
    'insert into arrival (number, at) values (?, ?) on conflict (number) do update set at = excluded.at',
  )
  const sweepSpent = database.prepare(
    'delete from spent where nonce in (select nonce from spent where expires_at < ? order by expires_at limit ?)',
  )
  const sweepArrivals = database.prepare(
    'delete from arrival where number in (select number from arrival where at <= ? order by at, number limit ?)',
  )

  /**
   * The number of the next arrival; undefined: too many were let in. Numbers have no gaps, so the difference of two counts
   * those between. What lies ahead was stored before the clock was set back, and is written over.
   */
  function nextNumber(most: number, now: number): number | undefined {
    const numberIn = (row: ReturnType<typeof first.get>) => row?.number as number | null | undefined
    const before = numberIn(lastUntil.get(now - window)) ?? (numberIn(first.get()) ?? 0) - 1
    const last = numberIn(lastUntil.get(now)) ?? before
    return last - before < most ? last + 1 : undefined
  }

  return {
    /** `added`: how many may come in this batch. */
    sweep(added: number, now: number): void {
      sweepSpent.run(now - SPENT_AFTER, added + SWEPT)
      sweepArrivals.run(now - window, added + SWEPT)
    },
    /** Why a signup is held, if it is new; null: it is let in. Claims its proof; `spent`: somebody else did. */
    reasonOf(
      name: string,
      email: string,
      credentials: Credentials | null | undefined,
      now: number,
    ): HoldReason | null | 'spent' {
      const { proof, unverified } = credentials ?? {}
      if (proof !== undefined && claim.run(proof.nonce, proof.claimant, proof.expires).changes === 0) {
        if (claimantOf.get(proof.nonce)?.claimant !== proof.claimant) return 'spent'
      }
      const candidate = candidateOf({ name, email, unverified }, rules)
      if (isKnown.get(emailKey(email)) !== undefined) return null
      const next = above === null ? null : nextNumber(above, now)
      const reason = holdReasonOf(candidate, {
        knows: mailbox => hasMailbox.get(mailbox) !== undefined,
        hasRoom: () => next !== undefined,
      })
      if (reason === null && next != null) arrive.run(next, now)
      return reason
    },
  }
}
