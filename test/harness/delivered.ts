import assert from 'node:assert/strict'
import { eventId } from '../../src/signup/contact.ts'
import type { StoredContact } from '../store/place.ts'
import type { Received } from './receiver.ts'

/** Every contact's event arrived, at least once, always under its one id; and no other event did. */
export function assertDelivered(contacts: readonly StoredContact[], received: readonly Received[]): void {
  const told = new Map<string, Set<string>>()
  for (const { headers, json } of received) {
    const ids = told.get(json.data.email) ?? new Set()
    told.set(json.data.email, ids.add(headers['webhook-id']!))
  }
  assert.deepEqual(
    new Map(contacts.map(contact => [contact.email, new Set([eventId(contact, 'joined')])])),
    new Map(contacts.map(({ email }) => [email, told.get(email)])),
  )
  assert.equal(told.size, contacts.length)
}
