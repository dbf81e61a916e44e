import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openLoop } from '../test/harness/open-loop.ts'
import { fillDatabase, startDatabase } from './database.ts'
import { fill } from './large.ts'
import type { Plan } from './options.ts'
import { runCommand, type Server, startService } from './processes.ts'
import { record } from './record.ts'
import { count, type Figure, median, spread } from './report.ts'
import { commandGoals, knownSignup, openLimiter } from './scenarios.ts'

/** Contacts on the list. */
const MILLION = 1_000_000
/** Signups a second beside a command, and the connections that they share. */
const RATE = 200
const CONNECTIONS = 16

interface Command {
  readonly name: string
  readonly args: readonly string[]
  /** The exit code. */
  readonly code: number
  /** Seconds. */
  readonly goal: number
  /** Makes what a run needs. */
  prepare?(
    folder: string,
    run: number,
    contacts: number,
    settings: Readonly<Record<string, string>>,
  ): Promise<void> | void
  /** The most rounds of a command that takes long. */
  readonly rounds?: number
}

const OUTPUT = 'list.csv'
const INPUT = 'others.csv'
const HELD_INPUT = 'held.jsonl'
/** Signups that are released or discarded at once. */
const heldBeside = (contacts: number): number => Math.min(100_000, contacts)
/** People who are invited at once. */
const invitedBeside = (contacts: number): number => Math.min(50_000, Math.ceil(contacts / 10))

/** What finds nobody looks at everybody. */
const commandsOn = (contacts: number): readonly Command[] => [
  { name: 'list --search', args: ['list', '--search', 'Nobody Ω'], code: 1, goal: commandGoals.list },
  { name: 'stats', args: ['stats', '--json'], code: 0, goal: commandGoals.stats },
  { name: 'export', args: ['export', '--output', OUTPUT], code: 0, goal: commandGoals.export },
  { name: 'import', args: ['import', INPUT], code: 0, goal: commandGoals.import, prepare: writeOthers, rounds: 2 },
  {
    name: `release ${count(heldBeside(contacts))}`,
    args: ['release', '--all'],
    code: 0,
    goal: commandGoals.release,
    prepare: addHeld,
  },
  {
    name: `discard ${count(heldBeside(contacts))}`,
    args: ['discard', '--yes', '--all'],
    code: 0,
    goal: commandGoals.discard,
    prepare: addHeld,
  },
  {
    name: `invite ${count(invitedBeside(contacts))}`,
    args: ['invite', '--yes', '--next', String(invitedBeside(contacts))],
    code: 0,
    goal: commandGoals.invite,
  },
]

/** Signups that are held, others for each run. */
async function addHeld(
  folder: string,
  run: number,
  contacts: number,
  settings: Readonly<Record<string, string>>,
): Promise<void> {
  const person = (i: number) =>
    `{"name":"Person ${i}","email":"held-${run}-${i}-${process.hrtime.bigint()}@example.com","state":"held","reason":"above-limit"}\n`
  writeFileSync(join(folder, HELD_INPUT), Array.from({ length: heldBeside(contacts) }, (_, i) => person(i)).join(''))
  const { code } = await runCommand(folder, settings, ['import', HELD_INPUT])
  if (code !== 0) throw new Error(`the import of who is held ended with ${code}`)
}

/** People who are not on the list, others for each run. */
function writeOthers(folder: string, run: number, contacts: number): void {
  const rows = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => `Person ${from + i},person-${run}-${from + i}@example.com\n`).join('')
  writeFileSync(join(folder, INPUT), 'name,email\n')
  for (let from = 0; from < contacts; from += 10_000)
    appendFileSync(join(folder, INPUT), rows(from, Math.min(from + 10_000, contacts)))
}

/** Commands on a list of a million contacts while signups go on, on both stores. */
export async function commandFigures(folder: string, plan: Plan): Promise<Figure[]> {
  const contacts = Math.min(plan.contacts, MILLION)
  const figures: Figure[] = []
  const measure = async (store: string, url: string, add: () => Promise<unknown> | unknown) => {
    plan.progress(`commands: filling ${store} with ${count(contacts)} contacts`)
    const settings = { ...openLimiter, DATABASE_URL: url }
    const first = await startService(folder, settings)
    await record(first.port, knownSignup)
    await first.stop()
    await add()
    const service = await startService(folder, settings)
    for (const command of commandsOn(contacts)) {
      plan.progress(`commands: ${command.name} on ${store}`)
      const measured = await measureCommand(folder, service, settings, command, { rounds: plan.rounds, contacts })
      figures.push(figureOf(`${command.name}, ${count(contacts)} contacts, ${store}`, command.goal, measured))
    }
    await service.stop()
  }

  const file = join(folder, 'commands.db')
  await measure('SQLite', `sqlite:${file}`, () => fill(file, contacts))
  const database = await startDatabase()
  try {
    await measure('PostgreSQL', database.url, () => fillDatabase(database.url, contacts))
  } finally {
    await database.remove()
  }
  return figures
}

interface Measured {
  readonly seconds: number
  /** Bytes. */
  readonly peak: number
  /** Of a signup, as a multiple of the usual. */
  readonly p99: number
}

/** A first run, not counted, says how long signups must go on beside it. */
async function measureCommand(
  folder: string,
  { port }: Server,
  settings: Readonly<Record<string, string>>,
  { name, args, code, prepare = () => {}, rounds: most = Infinity }: Command,
  { rounds, contacts }: { readonly rounds: number; readonly contacts: number },
): Promise<readonly Measured[]> {
  let runs = 0
  const run = async () => {
    const ended = await runCommand(folder, settings, args)
    rmSync(join(folder, OUTPUT), { force: true })
    if (ended.code !== code) throw new Error(`${name} ended with ${ended.code}`)
    return ended
  }
  const signups = async (seconds: number): Promise<number> => {
    const load = { baseUrl: `http://127.0.0.1:${port}`, connections: CONNECTIONS, stages: [{ rate: RATE, seconds }] }
    const [{ answers, due }] = (await openLoop(load)) as [Awaited<ReturnType<typeof openLoop>>[number]]
    if (answers[200]?.count !== due) throw new Error(`not every signup beside ${name} was answered with 200`)
    return answers[200].p99
  }
  const next = () => prepare(folder, runs++, contacts, settings)
  await next()
  const seconds = Math.max(1, Math.ceil((await run()).seconds))
  const measured: Measured[] = []
  for (let round = 1; round <= Math.min(rounds, most); round++) {
    await next()
    const usual = await signups(seconds)
    const [beside, ended] = await Promise.all([signups(seconds), run()])
    measured.push({ ...ended, p99: beside / usual })
  }
  return measured
}

function figureOf(name: string, goal: number, measured: readonly Measured[]): Figure {
  const [seconds, peaks, p99s] = (['seconds', 'peak', 'p99'] as const).map(each => measured.map(one => one[each]))
  const MB = peaks!.map(bytes => bytes / 1e6)
  const { memory, p99 } = commandGoals
  return {
    name,
    value: `${spread(seconds!, 1)} s, ${spread(MB)} MB, p99 of signups beside it ${spread(p99s!, 1)} × the usual`,
    goal: `≤ ${goal} s, ≤ ${memory} MB, ≤ ${p99} ×`,
    met: median(seconds!) <= goal && median(MB) <= memory && median(p99s!) <= p99,
  }
}
