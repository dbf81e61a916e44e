import type { Config } from '../config/config.ts'
import type { StoreLocation } from '../stores/location.ts'
import { type Movable, type Moved, type MoveOptions, move } from '../stores/operator/move.ts'
import type { Operator } from '../stores/operator/operator.ts'
import { sqliteOperator } from '../stores/sqlite/engine.ts'
import { sqliteMovable } from '../stores/sqlite/movable.ts'

/** What an operator does with the store while services run. Loads only the engine that is used. */
export async function operatorOf({ store }: Pick<Config, 'store'>): Promise<Operator> {
  return store.kind === 'sqlite'
    ? sqliteOperator(store.path)
    : (await import('../stores/postgres/engine.ts')).postgresOperator(store.url)
}

/** Copies everything in the store to another one, and compares both. No service may use either of them meanwhile. */
export async function moveTo(
  { store }: Pick<Config, 'store'>,
  to: StoreLocation,
  options: MoveOptions,
): Promise<Moved> {
  return move(await movable(store), await movable(to), options)
}

const movable = async (store: StoreLocation): Promise<Movable> =>
  store.kind === 'sqlite'
    ? sqliteMovable(store.path)
    : (await import('../stores/postgres/movable.ts')).postgresMovable(store.url)

export { storeName } from '../stores/location.ts'
export type { ContactFilter, Person } from '../stores/operator/contacts.ts'
export type { Candidates, Decided } from '../stores/operator/decide.ts'
export type { Traces } from '../stores/operator/erasure.ts'
export type { HeldCounts, HeldFilter } from '../stores/operator/held.ts'
export type { Entry, Imported } from '../stores/operator/imports.ts'
export type { Integrity } from '../stores/operator/integrity.ts'
export type { Moved, Progress } from '../stores/operator/move.ts'
export type { Operator } from '../stores/operator/operator.ts'
export { writeWhole } from '../stores/unfinished.ts'
