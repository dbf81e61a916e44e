import { createHash, randomUUIDv7 } from 'node:crypto'
import {
  type ContactState,
  emailKey,
  type HoldReason,
  RESEND_AFTER,
  RESEND_MOST,
  type Signup,
} from '../signup/contact.ts'
import { activate, addDeliveries, beginningOf, deliveryRow, type SignupTargets } from './activate.ts'
import { contactRow } from './contacts.ts'
import { StoreUnavailable, type Tx } from './database.ts'
import { type Delivery, LEASE } from './outbox.ts'

/** What became of a signup in the store. */
export type Admission =
  /** `contactId` is the store's own id. */
  | { readonly is: 'listed now'; readonly contactId: string }
  | { readonly is: 'already listed' }
  /** Recorded now. Its hand-over is leased to the caller. */
  | { readonly is: 'pending now'; readonly delivery: Delivery }
  /** Recorded earlier; its hand-over has not ended. */
  | { readonly is: 'still pending' }
  /** Recorded now and held: it goes no further until the operator releases it. */
  | { readonly is: 'held now'; readonly reason: HoldReason }
  /** Recorded and held earlier. */
  | { readonly is: 'still held' }
  /** Recorded, now or earlier: it goes no further until it is confirmed. `sends`: a mail that asks for it is stored now. */
  | { readonly is: 'unconfirmed'; readonly contactId: string; readonly sends: boolean }
  /** Its proof was used for another address, so it was not looked at. */
  | { readonly is: 'spent' }

export interface SignupRules {
  readonly targets: SignupTargets
  /** Whether the sources of signups are kept. */
  readonly trackSources: boolean
  /** Why each of these new signups is held, if it is; null: none is, and none has a proof. */
  readonly holdReasons: HoldReasons | null
}

export type HoldReasons = (tx: Tx, entries: readonly Entry[]) => Promise<readonly (HoldReason | null)[]>

/** A signup on its way to the store. Its id shows whether a commit whose answer was lost took effect. */
export interface Entry {
  readonly id: string
  readonly key: string
  readonly signup: Signup
}

export const entryOf = (signup: Signup): Entry => ({ id: randomUUIDv7(), key: emailKey(signup.email), signup })

interface Known {
  readonly number: number
  readonly id: string
  readonly email_key: string
  readonly state: ContactState
  readonly reason: HoldReason | null
}

/**
 * Records a batch of signups in one atomic step. Of any number of simultaneous ones with the same address exactly one is
 * stored, and its name and spelling are kept.
 */
export async function admit(tx: Tx, entries: readonly Entry[], rules: SignupRules): Promise<readonly Admission[]> {
  const spent = rules.holdReasons === null ? NOBODY : await claimProofs(tx, entries)
  const admitted = spent.size === 0 ? entries : entries.filter(entry => !spent.has(entry))
  const known = new Map<string, Known>()
  // Who is known counts towards no limit. Where there is none, most are new, and the insert says who is not.
  if (rules.holdReasons !== null) await findKnown(tx, keysOf(admitted), known)
  const firsts = new Map<string, Entry>()
  for (const entry of admitted) if (!firsts.has(entry.key)) firsts.set(entry.key, entry)
  for (let round = 1; ; round++) {
    const fresh = [...firsts.values()].filter(({ key }) => !known.has(key))
    if (fresh.length === 0) break
    if (round > ROUNDS) throw new StoreUnavailable('an address is neither new nor known')
    await add(tx, fresh, known, rules)
  }
  const handovers = await leasedHandovers(tx, admitted, known)
  const sentAgain = await sendAgain(tx, admitted, known, rules)
  const activated = await activateOthers(tx, known, rules)
  return entries.map((entry): Admission => {
    if (spent.has(entry)) return { is: 'spent' }
    const { number, id, state, reason } = known.get(entry.key)!
    // Of several that let it go on at once, the first does.
    const isNew = id === entry.id || activated.delete(number)
    if (state === 'held') return isNew ? { is: 'held now', reason: reason! } : { is: 'still held' }
    if (state === 'unconfirmed') return { is: 'unconfirmed', contactId: id, sends: isNew || sentAgain.delete(number) }
    if (state === 'listed' && isNew) return { is: 'listed now', contactId: id }
    if (state !== 'pending') return { is: 'already listed' }
    const delivery = handovers.get(entry)
    return delivery === undefined ? { is: 'still pending' } : { is: 'pending now', delivery }
  })
}

/** Milliseconds. */
const DAY = 86_400_000

/** A contact may be removed between the insert that finds it and the look at it, but not this often. */
const ROUNDS = 4

const NOBODY: ReadonlySet<unknown> = new Set()
const NONE: ReadonlyMap<Entry, Delivery> = new Map()
const keysOf = (entries: readonly Entry[]) => entries.map(({ key }) => key)

async function findKnown(tx: Tx, keys: readonly string[], known: Map<string, Known>): Promise<void> {
  if (keys.length === 0) return
  const rows = await tx.all<Known>(
    `select number, id, email_key, state, reason from contact where ${tx.dialect.among('email_key', '$1')}`,
    [keys],
  )
  for (const row of rows) known.set(row.email_key, row)
}

/** Adds new contacts to those that are known, with their deliveries. Hand-overs are leased to the caller. */
async function add(
  tx: Tx,
  fresh: readonly Entry[],
  known: Map<string, Known>,
  { targets, trackSources, holdReasons }: SignupRules,
): Promise<void> {
  const reasons = (await holdReasons?.(tx, fresh)) ?? []
  const beginning = beginningOf(targets)
  const rows = fresh.map(({ id, signup: { name, email, source } }, i) => {
    const reason = reasons[i] ?? undefined
    const { state, eventName } = reason === undefined ? beginning : { state: 'held' as const, eventName: null }
    const contact = { id, name, email, state, reason, eventName, createdAt: tx.now }
    return contactRow(trackSources ? { ...contact, source } : contact, tx.now)
  })
  const numbers = await tx.insertNew('contact', rows, 'email_key', { contended: true })
  for (const [i, { id, key }] of fresh.entries()) {
    const number = numbers.get(key)
    const reason = reasons[i] ?? null
    const state = reason === null ? beginning.state : 'held'
    if (number !== undefined) known.set(key, { number, id, email_key: key, state, reason })
  }
  await findKnown(
    tx,
    keysOf(fresh).filter(key => !numbers.has(key)),
    known,
  )
  const begun = fresh.filter(({ key }, i) => numbers.has(key) && reasons[i] == null)
  const deliveries = begun.flatMap(({ id, key }) =>
    beginning.destinations.map(destination => {
      const row = deliveryRow(tx, numbers.get(key)!, destination, beginning.kind)
      return beginning.kind === 'handover' ? { ...row, due_at: tx.now + LEASE, token: id } : row
    }),
  )
  await tx.insert('delivery', deliveries)
}

/** The hand-overs of those who were recorded by this batch, also where the answer to its first commit was lost. */
async function leasedHandovers(
  tx: Tx,
  entries: readonly Entry[],
  known: ReadonlyMap<string, Known>,
): Promise<ReadonlyMap<Entry, Delivery>> {
  const recorded = entries.filter(({ id, key }) => {
    const contact = known.get(key)!
    return contact.id === id && contact.state === 'pending'
  })
  if (recorded.length === 0) return NONE
  const rows = await tx.all<{ number: number; token: string | null }>(
    `select number, token from delivery where ${tx.dialect.among('contact', '$1')} and kind = 'handover'`,
    [recorded.map(({ key }) => known.get(key)!.number)],
  )
  const leased = new Map(rows.map(({ number, token }) => [token, number]))
  return new Map(
    recorded.flatMap((entry): [Entry, Delivery][] => {
      const { id, signup } = entry
      const { name, email, source } = signup
      const contact = { id, name, email, state: 'pending', createdAt: new Date(tx.now), source } as const
      const number = leased.get(id)
      if (number === undefined) return []
      return [[entry, { number, token: id, contact, kind: 'handover', attempts: 0, doubt: false }]]
    }),
  )
}

/** Claims proofs, each for one address. Returns the signups whose proof was used for another one. */
async function claimProofs(tx: Tx, entries: readonly Entry[]): Promise<ReadonlySet<unknown>> {
  const claimants = new Map(entries.map(entry => [entry, claimantOf(entry)] as const))
  const claims = new Map(
    entries.flatMap(entry => {
      const { proof } = entry.signup
      if (proof === undefined) return []
      const { nonce, expires } = proof
      return [[nonce, { nonce, claimant: claimants.get(entry)!, expires_at: expires.getTime() }] as const]
    }),
  )
  if (claims.size === 0) return NOBODY
  const rows = [...claims.values()].sort((a, b) => (a.nonce < b.nonce ? -1 : 1))
  await tx.insert('proof', rows, 'on conflict (nonce) do nothing')
  const found = await tx.all<{ nonce: string; claimant: string }>(
    `select nonce, claimant from proof where ${tx.dialect.among('nonce', '$1')}`,
    [[...claims.keys()]],
  )
  const owners = new Map(found.map(({ nonce, claimant }) => [nonce, claimant]))
  return new Set(
    entries.filter(entry => {
      const { proof } = entry.signup
      return proof !== undefined && owners.get(proof.nonce) !== claimants.get(entry)
    }),
  )
}

/** Who may use a proof again: a hash, since the table is no list of addresses. */
const claimantOf = ({ key, signup: { proof } }: Entry): string | null =>
  proof === undefined ? null : createHash('sha256').update(`${proof.nonce}\n${key}`).digest('base64url')

/**
 * Asks those again to confirm their address who sign up again, unless a mail waits, a server accepted one less than
 * `RESEND_AFTER` ago, or `RESEND_MOST` were sent within a day. Returns their numbers.
 */
async function sendAgain(
  tx: Tx,
  entries: readonly Entry[],
  known: ReadonlyMap<string, Known>,
  { targets }: SignupRules,
): Promise<Set<number>> {
  const waiting = entries
    .map(entry => ({ entry, row: known.get(entry.key)! }))
    .filter(({ entry, row }) => row.state === 'unconfirmed' && row.id !== entry.id)
    .map(({ row }) => row.number)
  if (waiting.length === 0 || targets.confirmation === null) return new Set()
  const rows = await tx.all<{ number: number }>(
    'update contact set confirmation_sent_at = $2,' +
      ' confirmations_sent = case when confirmation_sent_at <= $3 then 1 else confirmations_sent + 1 end' +
      ` where ${tx.dialect.among('number', '$1')} and state = 'unconfirmed'` +
      ` and (confirmations_sent < ${RESEND_MOST} or confirmation_sent_at <= $3)` +
      " and not exists (select 1 from delivery where contact = contact.number and kind = 'confirmation'" +
      " and (delivery.state = 'waiting' or delivery.state = 'delivered' and settled_at > $4)) returning number",
    [waiting, tx.now, tx.now - DAY, tx.now - RESEND_AFTER],
  )
  const numbers = rows.map(({ number }) => number)
  await addDeliveries(tx, numbers, 'confirmation', [targets.confirmation])
  return new Set(numbers)
}

/** Lets those go on who wait for a provider or a confirmation that is not configured any more. Returns their numbers. */
async function activateOthers(tx: Tx, known: Map<string, Known>, { targets }: SignupRules): Promise<Set<number>> {
  const activated = new Set<number>()
  const waitsInVain = {
    unconfirmed: targets.confirmation === null,
    pending: targets.provider === null,
  }
  for (const state of ['unconfirmed', 'pending'] as const) {
    if (!waitsInVain[state]) continue
    const numbers = [...known.values()].filter(row => row.state === state).map(({ number }) => number)
    if (numbers.length === 0) continue
    for (const number of await activate(tx, state, numbers, { ...targets, confirmation: null })) activated.add(number)
  }
  const next = targets.provider === null ? 'listed' : 'pending'
  for (const [key, row] of known) if (activated.has(row.number)) known.set(key, { ...row, state: next })
  return activated
}
