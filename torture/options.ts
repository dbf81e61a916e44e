import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

export const usage = `npm run torture -- [options]

  --minutes <n>     for all scenarios together (5); some counts are only reached with more
  --seed <n>        makes the same choices again
  --only <name>     this scenario; repeated or separated by commas, several
  --list            names every scenario, and the promise that it tries to break
  --program <file>  another program to hurt: bin/waitlist.js of another folder
`

export interface Options {
  readonly list: boolean
  /** For all scenarios. */
  readonly seconds: number
  readonly seed: number
  readonly only: readonly string[]
  readonly program: string | undefined
}

/** Throws a sentence for the user. `names`: those of the scenarios that there are. */
export function readOptions(args: readonly string[], names: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '5' },
      seed: { type: 'string' },
      only: { type: 'string', multiple: true, default: [] },
      list: { type: 'boolean', default: false },
      program: { type: 'string' },
    },
  })
  if (!/^\d{1,4}(\.\d+)?$/.test(values.minutes) || Number(values.minutes) === 0) {
    throw new Error('--minutes must be a number above 0')
  }
  if (values.seed !== undefined && !/^\d{1,10}$/.test(values.seed)) throw new Error('--seed must be a whole number')
  const only = values.only.flatMap(names => names.split(','))
  for (const name of only) if (!names.includes(name)) throw new Error(`there is no scenario ${name}`)
  return {
    list: values.list,
    seconds: Number(values.minutes) * 60,
    seed: values.seed === undefined ? randomInt(2 ** 32) : Number(values.seed),
    only,
    program: values.program && resolve(values.program),
  }
}
