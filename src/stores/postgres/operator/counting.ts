import type { Counting } from '../../operator/counting.ts'
import { countAll } from '../counts.ts'
import { lend, STATEMENT } from './open.ts'

export const counting = (url: string): Counting => ({
  counts: () => lend(url, ({ lend }) => lend(client => countAll(client, null, STATEMENT))),
})
