import { timeOf } from '../operate/output.ts'
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
export type RawContact = Readonly<Record<string, unknown>>

/** UUIDv7 (RFC 9562 §5.7) as we write it. */
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Milliseconds. Clocks differ, and local times are up to 14 hours ahead. */
const DAY = 86_400_000

/** Reads one contact by the rules for a signup. A problem never repeats a value. */
export function parseContact(raw: unknown, now: number): ImportRow | Problem {
  if (typeof raw !== 'object' || raw === null) return { problem: 'it must be a JSON object' }
  const contact: RawContact = Object.fromEntries(
    Object.entries(raw).filter(([, value]) => value !== null && value !== ''),
  )
  const { id, state = 'listed', reason, source = {}, code } = contact
  const signup = parseSignup(contact)
  if ('problem' in signup) return signup
  if (id !== undefined && !(typeof id === 'string' && UUID.test(id))) {
    return { problem: 'id must be a UUID of version 7 in lower case' }
  }
  if (!contactStates.includes(state as ContactState)) return { problem: `state must be ${oneOf(contactStates)}` }
  if (state === 'held' ? !holdReasons.includes(reason as HoldReason) : reason !== undefined) {
    return { problem: `reason belongs to a contact that is held, and must be ${oneOf(holdReasons)}` }
  }
  const times: Record<string, Date | undefined> = {}
  for (const member of ['createdAt', 'confirmedAt', 'invitedAt', 'redeemedAt']) {
    if (contact[member] === undefined) continue
    const time = timeOf(contact[member])
    if (!(time >= 0 && time <= now + DAY)) return { problem: `${member} ${A_TIME}` }
    times[member] = new Date(time)
  }
  const { createdAt, confirmedAt, invitedAt, redeemedAt } = times
  if (confirmedAt !== undefined && state === 'unconfirmed') {
    return { problem: 'confirmedAt belongs to a contact that is confirmed' }
  }
  if (state !== 'invited' && (code ?? invitedAt ?? redeemedAt) !== undefined) {
    return { problem: 'invitedAt, code and redeemedAt belong to a contact that is invited' }
  }
  if (state === 'invited' && !(typeof code === 'string' && isCode(code))) {
    return { problem: `code must be that of an invitation: ${CODE_LENGTH} letters, digits, dashes and underscores` }
  }
  if (state === 'invited' && invitedAt === undefined) return { problem: `invitedAt ${A_TIME}` }
  if (typeof source !== 'object') return { problem: 'source must be an object' }
  return {
    signup,
    id: id as string | undefined,
    state: state as ContactState,
    reason: reason as HoldReason | undefined,
    createdAt,
    source: sourceOf(source!),
    invitation: invitedAt && { code: code as string, at: invitedAt, redeemedAt },
    confirmedAt,
  }
}

const A_TIME = 'must be a time such as 2026-11-22T09:30:00Z, from 1970 until now'

/** "a, b or c". */
const oneOf = (words: readonly string[]): string => `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`

/** Cleaned like the source of a signup. */
function sourceOf(value: object): ImportRow['source'] {
  const texts = Object.entries(value).filter(([, text]) => typeof text === 'string' && text !== '')
  return parseSource(new URLSearchParams(texts).toString())
}
