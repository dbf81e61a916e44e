import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { scenarios } from './scenarios.ts'

export const usage = `npm run bench -- [scenario …] [options]
npm run bench -- against <folder> [scenario …] [options]

Without a scenario it measures all of them, in about 45 minutes.

  health signup known refused limited   against a bare node:http server that gives the same answers
  postgres                              a new signup on PostgreSQL, against the same
  challenge                             a signup with each switch against bots, against without; altcha
  engines                               a new signup on SQLite, against PostgreSQL, 400,000 contacts in each
  large                                 a new signup in a large file, against a small one
  crowd                                 how long 8,000 wait that sign up at once
  commands                              what an operator types, with a million contacts, beside signups
  start memory provider                 starting; memory at rest; health beside a provider that hangs

With \`against\` the service of this checkout is compared with that of another one, whose packages are installed, in
\`signup\`, \`known\` and \`limited\`, or in the scenarios of the first two lines that are named.

  --rounds <n>    measurements of each (5)
  --seconds <n>   of each measurement (2)
  --contacts <n>  in the large file (5,000,000); of everything else that is large there is no more than that
`

export const others = ['challenge', 'engines', 'large', 'crowd', 'commands', 'start', 'memory', 'provider'] as const
const comparable: ReadonlySet<string> = new Set(scenarios.map(({ group }) => group))
const usuallyCompared = ['signup', 'known', 'limited']
export const names: ReadonlySet<string> = new Set([...comparable, ...others])

export interface Plan {
  readonly rounds: number
  readonly seconds: number
  readonly warmUp: number
  readonly starts: number
  readonly contacts: number
  progress(text: string): void
}

export interface Options {
  readonly chosen: ReadonlySet<string>
  /** The folder of another checkout; undefined: the bare server. */
  readonly against: string | undefined
  readonly plan: Plan
}

function folderOf(given: string | undefined): string {
  if (given === undefined || names.has(given))
    throw new Error('`against` takes the folder of another checkout, as in: npm run bench -- against ../before')
  return resolve(given)
}

/** Throws a sentence for the user. */
export function readOptions(args: readonly string[]): Options {
  const { values, positionals: named } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '2' },
      contacts: { type: 'string', default: '5000000' },
    },
  })
  const [against, positionals] = named[0] === 'against' ? [folderOf(named[1]), named.slice(2)] : [undefined, named]
  for (const name of positionals) {
    if (!names.has(name)) throw new Error(`there is no scenario ${name}`)
    if (against !== undefined && !comparable.has(name)) throw new Error(`\`against\` does not measure ${name}`)
  }
  const number = (name: 'rounds' | 'seconds' | 'contacts') => {
    if (!/^[1-9]\d{0,8}$/.test(values[name])) throw new Error(`--${name} must be a whole number, at least 1`)
    return Number(values[name])
  }
  const rounds = number('rounds')
  const seconds = number('seconds')
  const unnamed = against === undefined ? names : usuallyCompared
  return {
    chosen: new Set(positionals.length === 0 ? unnamed : positionals),
    against,
    plan: {
      rounds,
      seconds,
      // A single round is a look, not a measurement.
      warmUp: rounds === 1 ? 0 : seconds,
      starts: rounds === 1 ? 1 : 7,
      contacts: number('contacts'),
      progress: text => process.stderr.write(`${text}\n`),
    },
  }
}
