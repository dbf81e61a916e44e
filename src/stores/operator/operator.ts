import { type Engine, lend } from '../sql.ts'
import { contacts } from './contacts.ts'
import type { Copies } from './copies.ts'
import { countAll } from './counts.ts'
import { deliveries } from './deliveries.ts'
import { erasure } from './erasure.ts'
import { holding } from './held.ts'
import { imports } from './imports.ts'
import { type Condition, integrity } from './integrity.ts'
import { invitations } from './invitations.ts'

/** What each engine does in a way of its own. */
interface OwnWays extends Copies {
  readonly condition: Condition
  /** Describes the store in a few words; changes nothing. */
  look(): Promise<string>
}

/**
 * What an operator does with a store. All of it works while services use the store, unless its docstring says otherwise.
 * Every method throws `OperatorError` when there is no such store or it is not ours.
 */
export const operatorOn = (engine: Engine, { condition, ...own }: OwnWays) => ({
  ...contacts(engine),
  ...deliveries(engine),
  ...erasure(engine),
  ...integrity(engine, condition),
  ...imports(engine),
  ...holding(engine),
  ...invitations(engine),
  /** Counts everything, of one moment. Among a million contacts it takes some tenths of a second. */
  counts: () => lend(engine, 'reading', sql => sql.snapshot(sql => countAll(sql, null))),
  ...own,
})
export type Operator = ReturnType<typeof operatorOn>
