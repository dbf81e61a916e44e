import fc from 'fast-check'
import { type Line, type Trouble, troubles } from './line.ts'
import { type Fate, fates, type Moment } from './process.ts'
import type { Work } from './processes.ts'
import { RECEIVER } from './receiver.ts'
import { automationOf } from './vendor.ts'
import type { World } from './world.ts'

/** What of the world decides which commands make sense. */
export interface Model {
  /** The domain of this history: many histories share a store. */
  readonly domain: string
  readonly owned: Set<string>
  readonly refusing: Set<string>
  readonly down: Set<LineName>
  gone: boolean
  /** Whether the provider is the one of the first day. */
  isFirst: boolean
}

type Command = fc.AsyncCommand<Model, World>

export const people = ['ada', 'bob', 'cyd', 'dot'] as const
type Person = (typeof people)[number]
const lines = ['creating', 'starting', 'receiving'] as const
type LineName = (typeof lines)[number]

const addressOf = (person: Person, { domain }: Model) => `${person}@${domain}`
const lineOf = (name: LineName, { vendor, receiver }: World): Line =>
  name === 'receiving' ? receiver.line : vendor()[name]

const command = (
  text: string,
  run: (world: World, model: Model) => unknown,
  check: (model: Readonly<Model>) => boolean = () => true,
): Command => ({
  check,
  run: async (model, world) => void (await run(world, model)),
  toString: () => text,
})

/** The same address, however it is typed. */
const spellings: readonly ((person: Person, domain: string) => string)[] = [
  (person, domain) => `${person}@${domain}`,
  (person, domain) => `${person.toUpperCase()}@${domain}`,
  (person, domain) => ` ${person}@${domain.toUpperCase()}\t`,
]

const person = fc.constantFrom(...people)
const typed = fc.record({ who: person, spelling: fc.nat(spellings.length - 1) })

/** While calls are on their way. */
const MEANWHILE = 10
const meanwhiles = ['the background works', 'the outboxes work', 'sleepers wake up'] as const
const work = (what: (typeof meanwhiles)[number], world: World, after: number): Work[] => {
  if (what === 'sleepers wake up') return world.processes.wake(after)
  return what === 'the background works' ? world.background(after) : world.outboxes(after)
}

const signups = fc
  .record({
    visitors: fc.oneof(
      { weight: 3, arbitrary: fc.tuple(typed) },
      { weight: 2, arbitrary: fc.array(typed, { minLength: 2, maxLength: 3 }) },
    ),
    meanwhile: fc.subarray([...meanwhiles]),
    after: fc.constantFrom(0, MEANWHILE),
  })
  .map(({ visitors, meanwhile, after }) => {
    const who = visitors.map(({ who, spelling }) => `${who}${"'".repeat(spelling)}`).join(', ')
    const and = meanwhile.map(what => `, ${what}${after === 0 ? '' : ' meanwhile'}`).join('')
    return command(`${who} sign up${and}`, (world, { domain }) => {
      const visits = visitors.map(({ who, spelling }) => world.visit(who, spellings[spelling]!(who, domain)))
      return world.processes.through(...visits, ...meanwhile.flatMap(what => work(what, world, after)))
    })
  })

/** Also twice at the same time. */
const loops = fc
  .subarray([...meanwhiles, ...meanwhiles], { minLength: 1 })
  .map(all => command(all.join(', '), world => world.processes.through(...all.flatMap(what => work(what, world, 0)))))

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const clock = fc
  .constantFrom(SECOND, 3 * SECOND, 15 * SECOND, 61 * SECOND, 600 * SECOND, 3 * HOUR, 25 * HOUR, 96 * HOUR)
  .map(wait =>
    command(`${wait / SECOND} s pass`, async world => {
      for (const name of lines) lineOf(name, world).arrive()
      await world.processes.pass(wait)
    }),
  )

const ownerAdds = person.map(who =>
  command(
    `the owner adds ${who}`,
    (world, model) => {
      model.owned.add(`${who} ${model.isFirst}`)
      world.own(addressOf(who, model))
    },
    ({ owned, isFirst }) => !owned.has(`${who} ${isFirst}`),
  ),
)

const refusal = fc.record({ who: person, refuses: fc.boolean() }).map(({ who, refuses }) =>
  command(
    `each vendor ${refuses ? 'refuses' : 'accepts'} ${who}`,
    ({ vendors }, model) => {
      model.refusing[refuses ? 'add' : 'delete'](who)
      for (const vendor of vendors) vendor.refuses(addressOf(who, model), refuses)
    },
    ({ refusing }) => refusing.has(who) !== refuses,
  ),
)

/** A start that arrives after it was abandoned, and was repeated, is beyond what anybody can tell. */
const possible = (line: LineName, what: Trouble) => line !== 'starting' || what !== 'unclear, effect later'
const trouble = fc
  .record({
    line: fc.constantFrom<LineName>('creating', 'creating', 'starting', 'receiving'),
    what: fc.array(fc.constantFrom(...troubles), { minLength: 1, maxLength: 2 }),
  })
  .filter(({ line, what }) => what.every(each => possible(line, each)))
  .map(({ line, what }) => command(`${line}: next ${what.join(', ')}`, world => lineOf(line, world).next(...what)))

const outage = fc
  .record({ line: fc.constantFrom(...lines), what: fc.constantFrom(...troubles) })
  .filter(({ line, what }) => possible(line, what))
  .map(({ line, what }) =>
    command(
      `${line}: from now on ${what}`,
      (world, { down }) => {
        down.add(line)
        lineOf(line, world).always(what)
      },
      ({ down }) => !down.has(line),
    ),
  )
const recovery = fc.constantFrom(...lines).map(line =>
  command(
    `${line}: answers again`,
    (world, { down }) => {
      down.delete(line)
      lineOf(line, world).always(null)
    },
    ({ down }) => down.has(line),
  ),
)
const vanishing = fc.boolean().map(gone =>
  command(
    gone ? 'the receiver vanishes' : 'the receiver is back',
    ({ receiver }, model) => {
      model.gone = gone
      receiver.vanish(gone)
    },
    model => model.gone !== gone,
  ),
)

const often = (times: number, what: Fate['what'], ...moments: readonly Moment[]): Fate[] =>
  Array.from({ length: times }, () => moments.map(at => ({ what, at }))).flat()
const fate = fc
  .constantFrom(
    ...(Object.keys(fates) as Fate['what'][]).flatMap(what => fates[what].map((at): Fate => ({ what, at }))),
    // More often: what is rarely come to, and what dies with an answer.
    ...often(
      2,
      'dies',
      'after create',
      'before settle',
      'after deliver',
      'before claim one',
      'after claim one',
      'after claim',
      'after claim',
      'after claim events',
    ),
    ...often(
      2,
      'is refused by the store',
      'before claim one',
      'after claim one',
      'after claim',
      'after claim',
      'after claim events',
    ),
  )
  .map(fate => command(`the process ${fate.what} ${fate.at}`, ({ processes }) => processes.destine(fate)))
const restart = fc.constant(command('the process is started again', ({ processes }) => processes.restart()))
const reopening = fc.constant(
  command('the file is opened again', async ({ processes, place, witness, vendor }) => {
    processes.restart()
    await place.reopen(vendor().name)
    witness.seen('the file was opened again')
  }),
)

async function change(world: World, model: Model): Promise<void> {
  model.isFirst = !model.isFirst
  // What is down at the other one is that one's affair.
  model.down.delete('creating')
  model.down.delete('starting')
  await world.change()
}
const changes = fc.constant(command('the provider is changed', change))
/** An attempt at the one vendor is in doubt while the other one is in use. */
const changesAndBack = fc
  .record({
    who: person,
    what: fc.constantFrom<Trouble>('unclear after', 'unclear before', 'unreached'),
    isWorking: fc.boolean(),
  })
  .map(({ who, what, isWorking }) =>
    command(
      `${who} signs up (${what}), the provider is changed${isWorking ? ', works' : ''}, and changed back`,
      async (world, model) => {
        world.vendor().creating.next(what)
        await world.processes.through(world.visit(who, addressOf(who, model)))
        await change(world, model)
        if (isWorking) await world.processes.through(...world.background())
        await change(world, model)
      },
    ),
  )

/** Falls asleep with an answer, mostly for longer than it had the contact or the delivery. */
const oversleeping = fc
  .record({
    who: person,
    line: fc.constantFrom(...lines),
    what: fc.constantFrom(null, ...troubles),
    wait: fc.constantFrom(SECOND, 61 * SECOND, 61 * SECOND),
  })
  .filter(({ line, what }) => what === null || possible(line, what))
  .map(({ who, line, what, wait }) =>
    command(`for ${wait / SECOND} s it sleeps over ${who} (${line}: ${what ?? 'well'})`, async (world, model) => {
      const { processes } = world
      if (what !== null) lineOf(line, world).next(what)
      processes.destine({ what: 'sleeps', at: line === 'creating' ? 'before settle' : 'before settle event' })
      await processes.through(world.visit(who, addressOf(who, model)))
      if (line !== 'creating') await processes.through(...world.outboxes())
      processes.destine(null)
      await processes.pass(wait)
    }),
  )

/** A wise owner looks at the vendor before asking for a start that may have happened. */
export async function replay({ place, vendors, witness }: World): Promise<void> {
  const abandoned = place.abandoned()
  if (abandoned.length > 0) witness.seen('the owner replayed')
  const unheard = abandoned.filter(({ destination, email }) =>
    vendors.some(vendor => destination === automationOf(vendor.name) && vendor.starts(email) === 0),
  )
  if (unheard.length > 0) await place.replay(unheard)
  if (abandoned.some(({ destination }) => destination === RECEIVER)) await place.replayAll(RECEIVER)
}
const replaying = fc.constant(command('the owner replays', replay))

const any = fc.oneof(
  { weight: 300, arbitrary: signups },
  { weight: 250, arbitrary: loops },
  { weight: 150, arbitrary: clock },
  { weight: 100, arbitrary: oversleeping },
  { weight: 150, arbitrary: trouble },
  { weight: 200, arbitrary: fate },
  { weight: 60, arbitrary: replaying },
  { weight: 60, arbitrary: ownerAdds },
  { weight: 40, arbitrary: refusal },
  { weight: 40, arbitrary: outage },
  { weight: 60, arbitrary: recovery },
  { weight: 20, arbitrary: vanishing },
  { weight: 40, arbitrary: restart },
  // A thread must end, and another start.
  { weight: 2, arbitrary: reopening },
  { weight: 3, arbitrary: changes },
  { weight: 3, arbitrary: changesAndBack },
)

/** The commands of one history. */
export const commands = (constraints: fc.CommandsContraints) => fc.commands([any], constraints)
