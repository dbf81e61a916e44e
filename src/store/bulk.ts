import { setTimeout as sleep } from 'node:timers/promises'
import type { ContactState } from '../signup/contact.ts'
import { emailKey } from '../signup/contact.ts'
import { type ContactFilter, conditionsOf, lastNumber } from './contacts.ts'
import type { Database, Tx } from './database.ts'

/** Changes of many rows while signups go on: in short transactions with rests in between. */

/** Rows of one step, and the milliseconds of the rest after it. */
export const STEP = 500
export const REST = 10

interface Steps {
  /** The numbers of the next rows above a number. */
  page(tx: Tx, above: number, limit: number): Promise<readonly number[]>
  /** Changes those of them that are still meant. Returns how many there were. */
  change(tx: Tx, numbers: readonly number[]): Promise<number>
}

/**
 * By ascending number, so it ends also where what was changed is soon meant again. Returns how many were changed. A process
 * that is killed leaves whole steps.
 */
export async function forEachPage(
  database: Database,
  { page, change }: Steps,
  most = Number.POSITIVE_INFINITY,
): Promise<number> {
  let [above, changed] = [0, 0]
  while (changed < most) {
    const limit = Math.min(STEP, most - changed)
    // Apart from the change, since it needs no lock.
    const numbers = await database.read(tx => page(tx, above, limit))
    if (numbers.length === 0) break
    // After a lost answer, our own change looks like that of another operator.
    changed += await database.transaction(tx => change(tx, numbers), { repeatable: false })
    above = numbers.at(-1)!
    await sleep(REST)
  }
  return changed
}

export interface Changed {
  /** Contacts that were changed. */
  readonly done: number
  /** Of the given addresses those that were not in the state, and in which they were; null: they are not on the list. */
  readonly missing: readonly { readonly address: string; readonly state: ContactState | null }[]
}

/** A change of contacts that are in a state. Those that get into it later than it began stay as they are. */
export async function changeContacts(
  database: Database,
  filter: ContactFilter & { readonly state: ContactState },
  change: Steps['change'],
  most?: number,
): Promise<Changed> {
  const { addresses, state } = filter
  const { upTo, missing } = await database.read(async tx => ({
    upTo: await lastNumber(tx),
    missing: addresses === undefined ? [] : await notIn(tx, state, addresses),
  }))
  const page: Steps['page'] = async (tx, above, limit) => {
    const { where, values } = conditionsOf({ ...filter, above, upTo }, tx.dialect)
    const rows = await tx.all<{ number: number }>(
      `select number from contact ${where} order by number limit $${values.length + 1}`,
      [...values, limit],
    )
    return rows.map(({ number }) => number)
  }
  return { done: await forEachPage(database, { page, change }, most), missing }
}

async function notIn(tx: Tx, state: ContactState, addresses: readonly string[]): Promise<Changed['missing']> {
  const { where, values } = conditionsOf({ addresses }, tx.dialect)
  const rows = await tx.all<{ email_key: string; state: ContactState }>(
    `select email_key, state from contact ${where}`,
    values,
  )
  const states = new Map(rows.map(row => [row.email_key, row.state]))
  return addresses
    .map(address => ({ address, state: states.get(emailKey(address)) ?? null }))
    .filter(each => each.state !== state)
}

/** The numbers of those that are still in the state, locked: another operator may have just decided about the others. */
export async function lockInState(tx: Tx, state: ContactState, numbers: readonly number[]): Promise<readonly number[]> {
  const rows = await tx.all<{ number: number }>(
    `select number from contact where ${tx.dialect.among('number', '$1')} and state = '${state}'` +
      ` order by number ${tx.dialect.forUpdate}`,
    [numbers],
  )
  return rows.map(({ number }) => number)
}
