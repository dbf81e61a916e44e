import type { Engine } from '../sql.ts'
import { type Contacts, contacts } from './contacts.ts'
import type { Copies } from './copies.ts'
import { type Counting, counting } from './counts.ts'
import { type Deliveries, deliveries } from './deliveries.ts'
import { type Erasure, erasure } from './erasure.ts'
import { type Holding, holding } from './held.ts'
import { type Imports, imports } from './imports.ts'
import { type Condition, type IntegrityCheck, integrity } from './integrity.ts'
import { type Pruning, pruning } from './pruning.ts'

/**
 * What an operator does with a store. All of it works while services use the store, unless its docstring says otherwise.
 * Every method throws `OperatorError` when there is no such store or it is not ours.
 */
export interface Operator
  extends Contacts,
    Imports,
    Counting,
    Deliveries,
    Holding,
    Erasure,
    Pruning,
    Copies,
    IntegrityCheck,
    Look {}

interface Look {
  /** Describes the store in a few words; changes nothing. */
  look(): Promise<string>
}

/** What each engine does in a way of its own. */
export interface OwnWays extends Copies, Look {
  readonly condition: Condition
}

export const operatorOn = (engine: Engine, { condition, ...own }: OwnWays): Operator => ({
  ...contacts(engine),
  ...counting(engine),
  ...deliveries(engine),
  ...erasure(engine),
  ...pruning(engine),
  ...integrity(engine, condition),
  ...imports(engine),
  ...holding(engine),
  ...own,
})
