import assert from 'node:assert/strict'
import * as sqlite from '../test/harness/database.ts'
import { assertDelivered } from '../test/harness/delivered.ts'
import type { Ledger } from '../test/harness/ledger.ts'
import * as postgres from '../test/harness/postgres-database.ts'
import type { Received } from '../test/harness/receiver.ts'
import type { StoredContact } from '../test/store/place.ts'

/** Everybody who is stored, in `DATABASE_URL`, which a program may be using. A SQLite file must be whole. */
export async function contactsAt(url: string): Promise<readonly StoredContact[]> {
  if (!url.startsWith('sqlite:')) return postgres.contactsIn(url)
  const path = url.slice('sqlite:'.length)
  const whole = sqlite.withDatabase(path, database => database.prepare('pragma integrity_check').get())
  assert.equal(whole?.integrity_check, 'ok')
  return sqlite.contactsIn(path)
}

/**
 * Nothing acknowledged is lost, nothing is doubled, every contact has one event, and every answer was true. With
 * `received`, to be asked when nothing is left to deliver, every event arrived under its one id.
 */
export async function assertKept(ledger: Ledger, url: string, received?: readonly Received[]): Promise<number> {
  const contacts = await contactsAt(url)
  ledger.assertTrueOf(contacts)
  if (received !== undefined) assertDelivered(contacts, received)
  return contacts.length
}
