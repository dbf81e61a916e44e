import {
  CODE_LENGTH,
  type ContactState,
  contactStates,
  type HoldReason,
  holdReasons,
  isCode,
} from '../signup/contact.ts'
import { type Problem, parseSignup, parseSource } from '../signup/parse.ts'
import type { ImportRow } from './store.ts'

/** A contact as a file has it: nothing is known of the values. What is empty or null counts as absent. */
export type RawContact = Readonly<Partial<Record<Member, unknown>>>
type Member =
  | 'id'
  | 'name'
  | 'email'
  | 'state'
  | 'reason'
  | 'createdAt'
  | 'source'
  | 'invitedAt'
  | 'code'
  | 'redeemedAt'
  | 'confirmedAt'

/** UUIDv7 (RFC 9562 §5.7) as we write it. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Reads one contact by the rules for a signup. A problem never repeats a value. */
export function parseContact(raw: unknown, now: number): ImportRow | Problem {
  if (typeof raw !== 'object' || raw === null) return { problem: 'it must be a JSON object' }
  const { id, name, email, state, reason, createdAt, source, confirmedAt } = raw as RawContact
  const signup = parseSignup({ name, email })
  if ('problem' in signup) return signup
  if (!isAbsent(id) && !(typeof id === 'string' && UUID.test(id))) {
    return { problem: 'id must be a UUID of version 7 in lower case' }
  }
  if (!isAbsent(state) && !contactStates.includes(state as ContactState)) {
    return { problem: `state must be ${oneOf(contactStates)}` }
  }
  if (state === 'held' ? !holdReasons.includes(reason as HoldReason) : !isAbsent(reason)) {
    return { problem: `reason belongs to a contact that is held, and must be ${oneOf(holdReasons)}` }
  }
  const created = pastTimeOf(createdAt, now)
  if (Number.isNaN(created?.getTime())) return { problem: `createdAt ${A_TIME}` }
  const invitation = invitationOf(raw, now)
  if (invitation !== undefined && 'problem' in invitation) return invitation
  const confirmed = pastTimeOf(confirmedAt, now)
  if (Number.isNaN(confirmed?.getTime())) return { problem: `confirmedAt ${A_TIME}` }
  if (confirmed !== undefined && state === 'unconfirmed') {
    return { problem: 'confirmedAt belongs to a contact that is confirmed' }
  }
  if (!isAbsent(source) && typeof source !== 'object') return { problem: 'source must be an object' }
  return {
    signup,
    id: isAbsent(id) ? undefined : (id as string),
    state: isAbsent(state) ? 'listed' : (state as ContactState),
    reason: isAbsent(reason) ? undefined : (reason as HoldReason),
    createdAt: created,
    source: sourceOf((source ?? {}) as object),
    invitation,
    confirmedAt: confirmed,
  }
}

function invitationOf(raw: RawContact, now: number): ImportRow['invitation'] | Problem {
  const { state, invitedAt, code, redeemedAt } = raw
  if (state !== 'invited') {
    if (isAbsent(invitedAt) && isAbsent(code) && isAbsent(redeemedAt)) return undefined
    return { problem: 'invitedAt, code and redeemedAt belong to a contact that is invited' }
  }
  if (typeof code !== 'string' || !isCode(code)) {
    return { problem: `code must be that of an invitation: ${CODE_LENGTH} letters, digits, dashes and underscores` }
  }
  const [at, redeemed] = [pastTimeOf(invitedAt, now), pastTimeOf(redeemedAt, now)]
  if (at === undefined || Number.isNaN(at.getTime())) return { problem: `invitedAt ${A_TIME}` }
  if (Number.isNaN(redeemed?.getTime())) return { problem: `redeemedAt ${A_TIME}` }
  return { code, at, redeemedAt: redeemed }
}

const A_TIME = 'must be a time such as 2026-11-22T09:30:00Z, from 1970 until now'

/** "a, b or c". */
const oneOf = (words: readonly string[]): string => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

const isAbsent = (value: unknown): boolean => value === undefined || value === null || value === ''

/** Milliseconds. Clocks differ, and local times are up to 14 hours ahead. */
const DAY = 86_400_000

/** Undefined: it is absent. An invalid date: it is not a time of the past. */
function pastTimeOf(value: unknown, now: number): Date | undefined {
  if (isAbsent(value)) return undefined
  const time = timeOf(value)
  return new Date(time >= 0 && time <= now + DAY ? time : Number.NaN)
}

const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?(?: ?(Z|UTC|[+-]\d\d(?::?\d\d)?))?)?$/i

/** Milliseconds since 1970 for a time in ISO 8601, or as tools write it; in UTC unless it has an offset. Otherwise NaN. */
function timeOf(value: unknown): number {
  const [, day, minute = '00:00', second = ':00', zone = 'Z'] =
    (typeof value === 'string' && TIME.exec(value.trim())) || []
  // A day that does not exist would be taken for one of the next month.
  if (day === undefined || new Date(`${day}T00:00Z`).getUTCDate() !== Number(day.slice(8))) return Number.NaN
  const [, hours, minutes = '00'] = /^([+-]\d\d):?(\d\d)?$/.exec(zone) ?? []
  return Date.parse(`${day}T${minute}${second.slice(0, 7)}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`)
}

/** Cleaned like the source of a signup. */
function sourceOf(value: object): ImportRow['source'] {
  const texts = Object.entries(value).filter(([, text]) => typeof text === 'string' && text !== '')
  return texts.length === 0 ? undefined : parseSource(new URLSearchParams(texts).toString())
}
