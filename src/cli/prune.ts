import { operatorOf } from '../app/operator.ts'
import type { Config } from '../config/config.ts'
import { print } from './print.ts'
import { MANY, progressOn } from './progress.ts'
import { moment, number } from './table.ts'

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
  const lost = abandoned === 0 ? '' : `, ${number(abandoned)} of which had been given up`
  await print([`${which} that ended before ${moment(before)} ${deleted === 1 ? 'was' : 'were'} deleted${lost}.\n`])
}
