import { OperatorError } from '../../../waitlist/ports.ts'
import type { Copies } from '../../operator/copies.ts'

export const copies = (): Copies => ({
  async backUp() {
    throw new OperatorError('The list is in PostgreSQL, which has its own tools for copies: pg_dump makes one.')
  },
})
