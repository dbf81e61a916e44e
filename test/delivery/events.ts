import assert from 'node:assert/strict'
import { type Contact, eventId, type WaitlistEvent } from '../../src/signup/contact.ts'

export const CODE = 'c0deAbcdefgh-jklm_opqr'

/** The event of a contact; `number` tells one from the other. */
export function joined(number = 0, more: Partial<Contact> = {}): WaitlistEvent {
  const id = `01981d4f-3c00-7c4e-9d0a-${number.toString(16).padStart(12, '0')}`
  const at = new Date('2025-07-18T09:30:00.123Z')
  const email = `Ada.Lovelace.${number}@Example.com`
  const contact: Contact = { id, name: 'Ada King Lovelace', email, state: 'listed', createdAt: at, ...more }
  return { kind: 'joined', id: eventId(contact, 'joined'), name: 'waitlist.joined', at, contact }
}

/** The invitation of somebody who joined. */
export function invited(number = 0, more: Partial<Contact> = {}): WaitlistEvent {
  const { at, contact } = joined(number, more)
  const event = { kind: 'invited', name: 'waitlist.invited', at, code: CODE } as const
  const invitation = { code: CODE, at, name: event.name }
  return { ...event, id: eventId(contact, 'invited'), contact: { ...contact, state: 'invited', invitation } }
}

/** The reason, if there is one, is one line without addresses and secrets. */
export function assertDiscreet(result: object, secrets: readonly string[]): void {
  if (!('why' in result)) return
  const why = String(result.why)
  assert.ok(why !== '' && !/[@\n]/.test(why), why)
  for (const secret of secrets) assert.ok(!why.includes(secret), why)
}
