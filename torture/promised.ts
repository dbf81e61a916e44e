import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Scene } from './scenario.ts'
import type { Call } from './trace.ts'
import { EVENTS } from './traced.ts'

/** The ledgers of visitors, the provider and the receiver: addresses, in lower case. */
export interface Promised {
  /** They were told that they are on the list. */
  readonly acknowledged: Set<string>
  /** The provider was asked to add them. */
  readonly handedOver: Set<string>
  /** The receiver was told that they joined. */
  readonly told: Set<string>
}

export const nothingPromised = (): Promised => ({ acknowledged: new Set(), handedOver: new Set(), told: new Set() })

export function note({ acknowledged, handedOver, told }: Promised, call: Call): void {
  if (call.is === 'answer' && call.status === 200 && call.email !== undefined) acknowledged.add(call.email)
  if (call.is === 'send') (call.path === EVENTS ? told : handedOver).add(call.email)
}

/** Writes what is left on a disk into a folder. */
export function put({ folder }: Scene, files: ReadonlyMap<string, Buffer>): string {
  const place = join(folder, 'left')
  rmSync(place, { recursive: true, force: true })
  mkdirSync(place)
  for (const [name, bytes] of files) {
    // The index of the log is in memory; it is made anew.
    if (!name.endsWith('-shm') && !name.endsWith('-lock')) writeFileSync(join(place, basename(name)), bytes)
  }
  return place
}

const STORED = `select email_key, event_at,
  state <> 'pending' or (select token is not null or doubt or attempts from delivery
    where contact = contact.number and kind = 'handover') as tried,
  (select state <> 'waiting' or token is not null or doubt or attempts from delivery
    where contact = contact.number and kind = 'joined') as told from contact`

/**
 * Whoever was acknowledged is there, once, with an event; and an attempt that was begun is known to have begun, so that it is
 * not repeated as if for the first time.
 */
export function requireKept(folder: string, { acknowledged, handedOver, told }: Promised, where: string): void {
  const database = new DatabaseSync(join(folder, 'waitlist.db'))
  try {
    assert.equal(database.prepare('pragma integrity_check').get()?.integrity_check, 'ok', where)
    const isMade = database.prepare("select 1 from sqlite_schema where name = 'contact'").get() !== undefined
    const rows = isMade ? database.prepare(STORED).all() : []
    const stored = new Map(rows.map(row => [row.email_key as string, row]))
    const lacking = (emails: ReadonlySet<string>, what: 'event_at' | 'tried' | 'told') =>
      [...emails].filter(email => !stored.get(email)?.[what])
    assert.deepEqual(lacking(acknowledged, 'event_at'), [], `lost: ${where}`)
    assert.deepEqual(lacking(handedOver, 'tried'), [], `handed over without a claim: ${where}`)
    assert.deepEqual(lacking(told, 'told'), [], `told without a claim: ${where}`)
    assert.equal(stored.size, rows.length, `doubled: ${where}`)
  } finally {
    database.close()
  }
}
