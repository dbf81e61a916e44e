/**
 * Thousands of histories: visitors, the owner, the vendor's failures and the process's deaths in any order. Whatever
 * happened, once everybody behaves again the promises must be true.
 *
 * A failure prints the seed, the path and the shortest history that shows it. To see that one again:
 *
 *     HISTORY='{"seed":1,"path":"2:3","replayPath":"AB:C"}' node --test test/delivery/histories.test.ts
 *
 * HISTORIES=100000 runs more of them. The store is SQLite: that PostgreSQL keeps the same promises, and what becomes of
 * what is pending when the provider is changed, is for the contract to show.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { emailKey } from '../../src/signup/contact.ts'
import type { Joined } from '../../src/signup/join.ts'
import { replay as replayDeliveries } from '../../src/store/deliveries.ts'
import { isSlow } from '../harness/environment.ts'
import { quickFolder } from '../harness/folder.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'
import { type Abilities, lineNames, outside, troubles } from './histories/outside.ts'
import { type Fate, fates, startProcesses, type Work } from './histories/processes.ts'
import { type Time, virtualTime } from './histories/time.ts'

const { HISTORIES = isSlow ? '2000' : '60', HISTORY = '{}' } = process.env
const { replayPath, ...again }: { seed?: number; path?: string; replayPath?: string } = JSON.parse(HISTORY)

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const DAY = 24 * HOUR
/** What goes by the machine's own clock, as an operator's commands do, is due at once. */
const START = Date.parse('2100-07-18T09:30:00Z')

/** A visitor, and what was answered: nothing as long as nothing came, `failed` when the store did. */
interface Visit {
  readonly email: string
  /** The command of the history. */
  readonly round: number
  told: Joined['is'] | 'failed' | 'nothing'
}

type Place = Awaited<ReturnType<typeof openPlace>>

/** A real store in a file, which histories use one after the other, and what is in it, read past the store. */
async function openPlace(t: TestContext, clock: () => number) {
  const path = join(quickFolder(t), 'waitlist.db')
  const store = await storeAt(path, {
    // How slow the machine is tells nothing here.
    bounds: { timeout: 600_000 },
    provider: 'vendor',
    destinations: ['automation', 'receiver'],
    clock,
  })
  const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
  const prepared = <Row>(sql: string) => {
    const statement = database.prepare(sql)
    return (...values: string[]) => statement.all(...values) as unknown as Row[]
  }
  const nextDue = prepared<{ due: number | null }>("select min(due_at) as due from delivery where state = 'waiting'")
  return {
    store,
    contacts: prepared<{ id: string; state: string; events: number; deliveries: number }>(
      'select id, state, event_at is not null as events,' +
        ' (select count(*) from delivery where delivery.contact = contact.number) as deliveries' +
        ' from contact where email_key = ?',
    ),
    /** When the first delivery that waits is due; null: none waits. */
    nextDue: () => nextDue()[0]!.due,
    abandoned: prepared<{ number: number; destination: string; email: string }>(
      'select delivery.number, destination, email_key as email from delivery join contact' +
        " on contact.number = delivery.contact where delivery.state = 'abandoned' and email_key like '%@' || ?",
    ),
    replay: (numbers: readonly number[]) => store.transaction(tx => replayDeliveries(tx, numbers)),
    async close() {
      database.close()
      await store.close()
    },
  }
}

/** One history's world: the real store and the real business, in the middle of those who are scripted. */
function createWorld(place: Place, time: Time, abilities: Abilities, domain: string) {
  const faults: string[] = []
  const fault = (what: string) => void faults.push(what)
  const others = outside(time, fault, abilities)
  const visits: Visit[] = []
  /** Addresses whose signup the store has confirmed to a process. */
  const stored = new Set<string>()
  /** Addresses of contacts that were taken off the list, as the vendor refused them. */
  const removed = new Set<string>()
  /** The command by which the owner added an address. */
  const owned = new Map<string, number>()
  let round = 0
  const processes = startProcesses({
    time,
    store: place.store,
    outside: others,
    fault,
    stored: ({ email }) => void stored.add(emailKey(email)),
    settled: ({ contact }, { is }) => void (is === 'removed' && removed.add(emailKey(contact.email))),
  })
  return {
    ...{ place, time, processes, outside: others, faults, visits, stored, removed, owned, domain },
    own(email: string) {
      if (others.add(email)) owned.set(email, ++round)
    },
    /** Visitors who come at once. */
    visit(...emails: readonly string[]): Work[] {
      round++
      return emails.map(email => {
        const visit: Visit = { email, round, told: 'nothing' }
        visits.push(visit)
        return processes.visit(signup('Ada Lovelace', email), told => Object.assign(visit, { told }))
      })
    },
  }
}
type World = ReturnType<typeof createWorld>

type Command = fc.AsyncCommand<object, World>
const command = (text: string, run: (world: World) => unknown): Command => ({
  check: () => true,
  run: async (_, world) => void (await run(world)),
  toString: () => text,
})

const people = ['ada', 'bob', 'cyd', 'dot'] as const
const person = fc.constantFrom(...people)
/** At once, while calls are on their way, and when leases have ended. */
const delays = [0, 10, 60 * SECOND] as const
const loops = ['handOvers', 'outboxes'] as const
const steps = fc.array(fc.record({ what: fc.constantFrom(...loops), after: fc.constantFrom(...delays) }), {
  maxLength: 4,
})

/** Visitors sign up, while processes look for what is due; or one of the two. */
const work = fc.record({ visitors: fc.array(person, { maxLength: 3 }), steps }).map(({ visitors, steps }) => {
  const looks = steps.map(({ what, after }) => `${what} after ${after} ms`)
  return command(`${visitors.join(', ')} sign up; ${looks.join(', ')}`, ({ processes, domain, ...world }) =>
    processes.through(
      ...world.visit(...visitors.map(who => `${who}@${domain}`)),
      ...steps.flatMap(({ what, after }) => processes.step(what, after)),
    ),
  )
})

const clock = fc
  .constantFrom(SECOND, 3 * SECOND, 15 * SECOND, 61 * SECOND, 600 * SECOND, 3 * HOUR, 25 * HOUR, 96 * HOUR)
  .map(wait =>
    command(`${wait / SECOND} s pass`, async world => {
      for (const name of lineNames) world.outside.lines[name].arrive()
      await world.processes.pass(wait)
    }),
  )

const ownerAdds = person.map(who => command(`the owner adds ${who}`, world => world.own(`${who}@${world.domain}`)))
const refusal = fc
  .record({ who: person, refuses: fc.boolean() })
  .map(({ who, refuses }) =>
    command(`the vendor ${refuses ? 'refuses' : 'accepts'} ${who}`, world =>
      world.outside.refuses(`${who}@${world.domain}`, refuses),
    ),
  )

/** A start that arrives after it was abandoned, and was repeated, is beyond what anybody can tell. */
const trouble = fc
  .record({ line: fc.constantFrom(...lineNames), what: fc.constantFrom(...troubles) })
  .filter(({ line, what }) => line !== 'starting' || what !== 'in doubt, effect later')
const happens = (how: 'next' | 'always') =>
  trouble.map(({ line, what }) => command(`${line}: ${how} ${what}`, ({ outside }) => outside.lines[line][how](what)))
const recovery = fc
  .constantFrom(...lineNames)
  .map(line => command(`${line}: answers again`, ({ outside }) => outside.lines[line].always(null)))

const fate = fc
  .constantFrom(...(Object.keys(fates) as Fate['what'][]))
  .chain(what => fc.constantFrom(...fates[what].map((at): Fate => ({ what, at }))))
  .map(fate => command(`a process ${fate.what} ${fate.at}`, ({ processes }) => processes.destine(fate)))
const restart = fc.constant(command('the processes are started again', ({ processes }) => processes.restart()))

/** A wise owner looks at the vendor before asking for a start that may have happened. */
async function replay({ place, outside, domain }: World): Promise<void> {
  const some = place
    .abandoned(domain)
    .filter(({ destination, email }) => destination === 'receiver' || outside.starts(email) === 0)
  if (some.length > 0) await place.replay(some.map(({ number }) => number))
}

const any = fc.oneof(
  { weight: 550, arbitrary: work },
  { weight: 150, arbitrary: clock },
  { weight: 150, arbitrary: happens('next') },
  { weight: 200, arbitrary: fate },
  { weight: 60, arbitrary: fc.constant(command('the owner replays', replay)) },
  { weight: 60, arbitrary: ownerAdds },
  { weight: 40, arbitrary: refusal },
  { weight: 40, arbitrary: happens('always') },
  { weight: 60, arbitrary: recovery },
  { weight: 40, arbitrary: restart },
)

/** A day, and the fifth that waits are scattered by. */
const LONGEST_WAIT = 29 * HOUR
/** A breaker that saw an outage makes a probe within this time. */
const PROBE = 5 * SECOND

/** Everybody behaves from now on, and what was said to be completed is completed in the time that was promised. */
async function comeToRest(world: World): Promise<void> {
  const { place, outside, time, processes } = world
  processes.destine(null)
  for (const name of lineNames) {
    outside.lines[name].arrive()
    outside.lines[name].next(null)
    outside.lines[name].always(null)
  }
  await complete()
  await replay(world)
  await complete()
  for (const { destination, email } of place.abandoned(world.domain)) {
    assert.ok(destination === 'automation' && outside.starts(email) > 0, `${email} was abandoned`)
  }

  async function complete(): Promise<void> {
    const longest = time.now() + LONGEST_WAIT
    for (let round = 0; round < 40; round++) {
      const due = place.nextDue()
      if (due === null) return
      assert.ok(due <= longest, 'something waits for longer than any rule says')
      await processes.pass(Math.max(PROBE, due - time.now()))
      await processes.through(...processes.step('handOvers'), ...processes.step('outboxes'))
    }
    assert.fail('deliveries do not come to an end')
  }
}

/** What must be true of an address in every history, once it has come to rest. */
function judge(world: World, email: string): void {
  const { place, outside, stored, removed, owned } = world
  const contacts = place.contacts(email)
  assert.ok(contacts.length <= 1, `${email}: ${contacts.length} contacts`)
  const contact = contacts[0]
  const events = contact?.events ?? 0
  const maker = outside.madeBy(email)

  if (contact === undefined) {
    const isOurs = maker !== undefined && maker !== 'owner' && !removed.has(email)
    assert.ok(!isOurs, `${email} is at the vendor, where we made it, and not here`)
  } else {
    assert.equal(contact.state, 'listed', email)
    assert.ok(maker !== undefined, `${email} is listed here, and not there`)
    // After an attempt in doubt nobody can tell whose contact it is, and it counts as ours.
    if (maker !== 'owner' && (maker === contact.id || !removed.has(email))) {
      assert.equal(contact.id, maker, `${email}: we made it`)
      assert.equal(events, 1, `${email}: events of a contact that we made`)
    }
    assert.equal(outside.starts(email), events, `${email}: starts of the automation`)
  }
  assert.equal(contact?.deliveries ?? 0, 2 * events, `${email}: deliveries`)
  assert.equal(outside.events(email), events, `${email}: events that the receiver knows`)

  const hasRefused = outside.hasRefused(email)
  const listedOrRefused = contact !== undefined || hasRefused
  if (stored.has(email)) assert.ok(listedOrRefused, `${email} was stored, and is lost`)

  const visits = world.visits.filter(visit => visit.email === email)
  const told = (...what: string[]) => visits.filter(visit => what.includes(visit.told))
  if (told('new', 'known').length > 0) assert.notEqual(contact, undefined, `${email} was told so, and is lost`)
  if (told('kept', 'lost').length > 0) assert.ok(listedOrRefused, `${email} was kept, and is lost`)
  if (told('refused').length > 0) assert.ok(hasRefused, `${email} was refused by nobody`)
  assert.ok(told('new').length <= 1, `${email} was told twice that it is new`)
  if (told('new').length === 1) assert.equal(events, 1, `${email} was told that it is new`)
  for (const known of told('known')) {
    // Somebody signed up before, or at the same time; or the owner had it.
    const others = visits.some(each => each !== known && each.told !== 'refused' && each.round <= known.round)
    const reason = others || (owned.get(email) ?? Number.POSITIVE_INFINITY) < known.round
    assert.ok(reason, `${email} was told on its first signup that it is known`)
  }
}

for (const [what, abilities] of Object.entries({
  'recognises repetitions': { repeatable: DAY },
  'recognises no repetition': { repeatable: 0 },
})) {
  test(`with a vendor that ${what}, every history ends well`, async t => {
    const time = virtualTime(START)
    t.after(time.restore)
    let place: Place | undefined
    let histories = 0

    async function live(history: Iterable<Command>): Promise<void> {
      place ??= await openPlace(t, time.now)
      const world = createWorld(place, time, abilities, `h${++histories}.example.com`)
      try {
        await fc.asyncModelRun(() => ({ model: {}, real: world }), history)
        await comeToRest(world)
        assert.deepEqual(world.faults, [])
        for (const person of people) judge(world, `${person}@${world.domain}`)
      } catch (error) {
        // What a failed history left behind must not get into the next.
        await place.close()
        place = undefined
        throw error
      }
    }

    try {
      const commands = fc.commands([any], { maxCommands: 24, size: 'max', ...(replayPath && { replayPath }) })
      await fc.assert(fc.asyncProperty(commands, live), { numRuns: Number(HISTORIES) / 2, ...again })
    } finally {
      await place?.close()
    }
    t.diagnostic(`${histories} histories`)
  })
}
