import { existsSync } from 'node:fs'
import { OperatorError } from '../../waitlist/ports/log.ts'
import type { Operator } from '../operator.ts'
import { contacts } from './operator/contacts.ts'
import { copies } from './operator/copies.ts'
import { counting } from './operator/counting.ts'
import { deliveries } from './operator/deliveries.ts'
import { erasure } from './operator/erasure.ts'
import { holding } from './operator/holding.ts'
import { imports } from './operator/imports.ts'
import { integrity } from './operator/integrity.ts'
import { pruning } from './operator/pruning.ts'
import { lackingRight } from './rights.ts'

/** The operator's side of a database file. Each call opens it separately; a service goes on meanwhile. */
export function sqliteOperator(path: string): Operator {
  const { backlog, ...others } = deliveries(path)
  return {
    ...contacts(path),
    ...counting(path),
    ...others,
    backlog,
    ...erasure(path),
    ...pruning(path),
    ...copies(path),
    ...integrity(path),
    ...imports(path),
    ...holding(path),
    async look() {
      const isThere = existsSync(path)
      const lacking = lackingRight(path)
      if (lacking !== undefined)
        throw new OperatorError(`${path} cannot be ${isThere ? 'written' : 'made'}: ${lacking}`)
      if (!isThere) return `${path}, which is made at the first start`
      // If nothing can be counted, the file cannot be used.
      await backlog()
      return path
    },
  }
}
