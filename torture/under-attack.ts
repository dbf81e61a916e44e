import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Ledger } from '../test/harness/ledger.ts'
import type { Program } from '../test/harness/program.ts'
import { fixture } from '../test/harness/tls.ts'
import { assertKept } from './checker.ts'
import { ask, honestClient } from './honest.ts'
import type { Figure, Result, Scene } from './scenario.ts'

/** What a service with TLS is started with. */
export const withTls = {
  TLS_CERT_FILE: fileURLToPath(fixture('first.crt')),
  TLS_KEY_FILE: fileURLToPath(fixture('first.key')),
}

/** The `DATABASE_URL` of a service that was started in this folder without one. */
export const listIn = (folder: string) => `sqlite:${join(folder, 'data', 'waitlist.db')}`

export interface Bounds {
  /** Millions of bytes that the attack may cost at most. */
  readonly memory: number
  /** Seconds after the attack until its connections are gone. */
  readonly gone?: number
}

/** What an attack found out by itself. */
export interface Found {
  readonly figures?: readonly Figure[]
  readonly broken?: readonly string[]
}

/** Descriptors that may be open afterwards and were not before, such as a file that is read. */
const SLACK = 4
/** Clients, and signups of each, before the attack: its cost is not that of a process that is still being compiled. */
const CLIENTS = 8
const WARM_UP = 150

/**
 * Attacks the program while an honest client uses it. The process must live, memory and descriptors stay within bounds
 * and descriptors come back, the honest client be served throughout, and what it was told be true of what is stored.
 */
export async function underAttack(
  scene: Scene,
  program: Program,
  { memory, gone = 5 }: Bounds,
  attack: () => Promise<Found | undefined>,
): Promise<Result> {
  const { ledger, folder } = scene
  const { baseUrl, process: child } = program
  await warmUp(baseUrl, ledger)
  const watch = scene.watch(child.pid!)
  await wait(1_000)
  const before = watch.samples.at(-1)!

  const honest = honestClient(baseUrl, ledger)
  const { figures = [], broken = [] } = (await attack()) ?? {}
  // Who comes next is served, too.
  await wait(1_000)
  const told = await honest.stop()
  const ended = performance.now()
  const isAlive = () => child.exitCode === null && child.signalCode === null
  const open = () => watch.samples.at(-1)!.descriptors - before.descriptors
  while (isAlive() && open() > SLACK && performance.now() - ended < gone * 1000) await wait(100)
  const left = open()
  watch.stop()

  const found = [...broken, ...told.broken]
  const cost = watch.peakMemory() - before.memory
  if (!isAlive()) found.push(`the process ended with ${child.exitCode ?? child.signalCode}: ${lastWords(program)}`)
  else if (left > SLACK) found.push(`${left} descriptors are left ${gone} s after the attack`)
  if (cost > memory) found.push(`the attack cost ${Math.round(cost)} MB of memory, more than ${memory}`)
  if (isAlive()) await program.end('SIGTERM')
  await assertKept(ledger, listIn(folder)).catch(error => found.push(error.message))
  return {
    figures: [
      ...figures,
      { name: 'memory before', value: before.memory, unit: 'MB' },
      { name: 'memory that the attack cost', value: cost, unit: 'MB', most: memory },
      { name: 'most descriptors', value: watch.peakDescriptors() },
      { name: 'descriptors left afterwards', value: left, most: SLACK },
      ...told.figures,
    ],
    broken: found,
  }
}

/** What Node says where it cannot go on. */
const lastWords = ({ stderr }: Program) => /^(FATAL|\w*Error).*$/m.exec(stderr())?.[0] ?? stderr().slice(-300)

/** Several, one after the other in an order that the seed chooses, as one result. What there is no time for is left out. */
export async function inTurn(scene: Scene, attacks: Readonly<Record<string, () => Promise<Result>>>): Promise<Result> {
  const figures: Figure[] = []
  const broken: string[] = []
  for (const [name, attack] of shuffled(Object.entries(attacks), scene.random)) {
    if (figures.length > 0 && scene.isOver(0.8)) {
      scene.diagnostic(`no time for ${name}`)
      continue
    }
    const result = await attack()
    figures.push(...result.figures.map(figure => ({ ...figure, name: `${name}: ${figure.name}` })))
    broken.push(...(result.broken ?? []).map(sentence => `${name}: ${sentence}`))
  }
  return { figures, broken }
}

function shuffled<T>(values: readonly T[], random: () => number): readonly T[] {
  const rest = [...values]
  return values.map(() => rest.splice(Math.floor(random() * rest.length), 1)[0]!)
}

/** By a few clients, so that everything that is made or compiled once has been. */
async function warmUp(baseUrl: string, ledger: Ledger): Promise<void> {
  const agent = new (baseUrl.startsWith('https:') ? HttpsAgent : HttpAgent)({ keepAlive: true })
  const client = async (number: number) => {
    for (let i = 0; i < WARM_UP; i++) {
      const email = `warm-${number}-${i}@example.com`
      ledger.note(email, (await ask(baseUrl, email, agent)).answer)
      await ask(baseUrl, null, agent)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)))
  agent.destroy()
}
