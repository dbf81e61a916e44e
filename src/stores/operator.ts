import type { Contacts } from './operator/contacts.ts'
import type { Copies } from './operator/copies.ts'
import type { Counting } from './operator/counting.ts'
import type { Deliveries } from './operator/deliveries.ts'
import type { Erasure } from './operator/erasure.ts'
import type { Holding } from './operator/holding.ts'
import type { Imports } from './operator/imports.ts'
import type { IntegrityCheck } from './operator/integrity.ts'
import type { Pruning } from './operator/pruning.ts'

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
    IntegrityCheck {
  /** Describes the store in a few words; changes nothing. */
  look(): Promise<string>
}
