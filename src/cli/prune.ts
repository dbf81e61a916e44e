import type { Config } from '../config.ts'
import { operatorOf } from '../operator.ts'
import { print } from './print.ts'
import { progressOn } from './progress.ts'

/** Deliveries. For fewer, which takes a moment, no progress is shown. */
const MANY = 5_000

/** Deletes the deliveries that ended before then. If it is stopped half-way, the next call deletes the rest. */
export async function pruneDeliveries(config: Config, before: Date): Promise<void> {
  const operator = await operatorOf(config)
  const bar = progressOn(process.stderr)
  const { deleted, abandoned } = await operator
    .prune(before, (done, total) => {
      if (total > MANY) bar.show({ phase: 'pruning', done: Math.min(done, total), total })
    })
    .finally(bar.end)
  const which = deleted === 1 ? '1 delivery' : `${number(deleted)} deliveries`
  const time = before.toISOString().replace(/\.\d+Z$/, 'Z')
  const lost = abandoned === 0 ? '' : `, ${number(abandoned)} of which had been given up`
  await print([`${which} that ended before ${time} ${deleted === 1 ? 'was' : 'were'} deleted${lost}.\n`])
}

const number = (count: number): string => count.toLocaleString('en')
