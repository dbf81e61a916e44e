import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { confirm, expire } from '../../src/confirm/store.ts'
import { erase } from '../../src/erase/store.ts'
import { release } from '../../src/holds/store.ts'
import { type ImportOutcome, importContacts } from '../../src/import/store.ts'
import { invite } from '../../src/invite/store.ts'
import {
  type ContactState,
  type DeliveryKind,
  type DeliveryState,
  RESEND_AFTER,
  RESEND_MOST,
} from '../../src/signup/contact.ts'
import type { SignupTargets } from '../../src/store/activate.ts'
import { contactPages } from '../../src/store/contacts.ts'
import { listDeliveries } from '../../src/store/deliveries.ts'
import { type Delivery, LEASE, type Settlement } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import { isSlow, seedOf } from '../harness/environment.ts'
import { DAY, forEachEngine, handClock, type Place, signup } from './place.ts'

const WITHIN = 7 * DAY
const WAIT = 5_000
const destinations = ['webhook', 'mail']

/** How an attempt ends; `nothing`: its process dies, or is late. */
const ends = ['done', 'unjoined', 'retry', 'doubt', 'uncounted', 'abandoned', 'removed', 'nothing'] as const
type End = (typeof ends)[number]

const who = fc.nat(2)
const end = fc.constantFrom('done' as const, 'nothing' as const, ...ends)
const its = <T extends string>(...names: readonly T[]) => fc.constantFrom(...names)
const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: its('sign up'), who, end }) },
  { weight: 7, arbitrary: fc.record({ do: its('deliver'), to: its('provider', ...destinations), end }) },
  { weight: 4, arbitrary: fc.record({ do: its('settle late'), end }) },
  { weight: 4, arbitrary: fc.record({ do: its('confirm', 'confirm', 'erase'), who }) },
  { weight: 2, arbitrary: fc.record({ do: its('invite'), most: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 2, arbitrary: fc.record({ do: its('import'), people: fc.array(who), isNews: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: its('pass'),
      time: fc.constantFrom(1, WAIT, LEASE - 1, LEASE, LEASE, RESEND_AFTER, DAY, WITHIN + 1),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: its('release', 'expire', 'restart') }) },
)
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const histories = fc.record({
  provider: fc.constantFrom(null, 'provider'),
  confirmation: fc.constantFrom(null, null, 'mail'),
  above: fc.constantFrom(null, 2),
  steps: fc.array(step, { minLength: 15, maxLength: 50 }),
})
/** Asked more often than anybody is; and mailed a week late. */
const asked: Step[] = Array.from({ length: RESEND_MOST + 1 }, (): Step[] => [
  { do: 'sign up', who: 0, end: 'done' },
  { do: 'deliver', to: 'mail', end: 'done' },
  { do: 'sign up', who: 0, end: 'done' },
  { do: 'pass', time: RESEND_AFTER },
]).flat()
const late: Step[] = [
  { do: 'sign up', who: 0, end: 'done' },
  { do: 'pass', time: WITHIN + 1 },
  { do: 'expire' },
  { do: 'deliver', to: 'mail', end: 'done' },
  { do: 'pass', time: DAY },
  { do: 'expire' },
  { do: 'pass', time: WITHIN + 1 },
  { do: 'expire' },
  { do: 'sign up', who: 0, end: 'done' },
]
/** A mail that no server accepted. */
const refused: Step[] = [
  { do: 'sign up', who: 0, end: 'done' },
  { do: 'deliver', to: 'mail', end: 'abandoned' },
  { do: 'pass', time: WITHIN + 1 },
  { do: 'expire' },
  { do: 'sign up', who: 0, end: 'done' },
]
/** An attempt that ends after another one has begun. */
const overtaken: Step[] = [
  { do: 'sign up', who: 0, end: 'nothing' },
  { do: 'pass', time: LEASE },
  { do: 'deliver', to: 'provider', end: 'nothing' },
  { do: 'settle late', end: 'done' },
  { do: 'deliver', to: 'mail', end: 'nothing' },
  { do: 'pass', time: LEASE },
  { do: 'deliver', to: 'mail', end: 'nothing' },
  { do: 'settle late', end: 'retry' },
]
const examples: [History][] = [
  [{ provider: null, confirmation: 'mail', above: null, steps: asked }],
  [{ provider: null, confirmation: 'mail', above: null, steps: late }],
  [{ provider: null, confirmation: 'mail', above: null, steps: refused }],
  [{ provider: 'provider', confirmation: null, above: null, steps: overtaken }],
]

type History = typeof histories extends fc.Arbitrary<infer T> ? T : never

/** A delivery in the model. */
interface Work {
  readonly kind: DeliveryKind
  readonly to: string
  state: DeliveryState
  attempts: number
  doubt: boolean
  due: number
  token: string | null
  settledAt: number | null
}

/** A contact in the model. */
interface Person {
  readonly email: string
  readonly id: string | null
  readonly createdAt: number
  state: ContactState
  hasEvent: boolean
  isConfirmed: boolean
  mails: { at: number; times: number } | null
  work: Work[]
}

const settlementOf = (kind: DeliveryKind, end: Exclude<End, 'nothing'>): Settlement => {
  if (end === 'abandoned') return { is: end, why: 'given up' }
  if (end === 'retry' || end === 'doubt' || end === 'uncounted')
    return { is: 'retry', wait: WAIT, doubt: end === 'doubt', why: 'HTTP 503', counts: end !== 'uncounted' }
  if (kind !== 'handover') return { is: 'delivered' }
  return end === 'removed' ? { is: end, why: 'refused' } : { is: 'listed', joined: end === 'done' }
}

const emailOf = (who: number) => `v${who}@example.com`

/** The list in a few lines. */
class Model {
  /** In the order in which they came. */
  people: Person[] = []
  readonly erased = new Set<string>()
  readonly #targets: SignupTargets
  readonly #above: number | null
  now = 0

  constructor(targets: SignupTargets, above: number | null) {
    this.#targets = targets
    this.#above = above
  }

  find = (email: string) => this.people.find(person => person.email === email)

  add(email: string, id: string | null): Person {
    const plain = { state: 'listed', hasEvent: false, isConfirmed: false, mails: null } as const
    const person: Person = { email, id, createdAt: this.now, ...plain, work: [] }
    this.people.push(person)
    return person
  }

  /** Whether the next one is held. */
  isFull = () =>
    this.#above !== null &&
    this.people.filter(({ createdAt, state }) => createdAt > this.now - DAY && state !== 'held').length >= this.#above

  notify(person: Person, kind: DeliveryKind, to: readonly string[]): void {
    person.work = person.work.filter(work => work.kind !== kind)
    const work = { kind, state: 'waiting', attempts: 0, doubt: false, token: null, settledAt: null } as const
    person.work.push(...to.map(to => ({ ...work, to, due: this.now })))
  }

  join(person: Person): void {
    Object.assign(person, { state: 'listed', hasEvent: true })
    this.notify(person, 'joined', destinations)
  }

  begin(person: Person, isConfirmed: boolean): void {
    const { provider, confirmation } = this.#targets
    person.work = []
    if (confirmation !== null && !isConfirmed) this.ask(Object.assign(person, { state: 'unconfirmed' }), 1)
    else {
      Object.assign(person, { isConfirmed, mails: null })
      if (provider === null) return this.join(person)
      person.state = 'pending'
      this.notify(person, 'handover', [provider])
    }
  }

  ask(person: Person, times: number): void {
    person.mails = { at: this.now, times }
    this.notify(person, 'confirmation', [this.#targets.confirmation!])
  }

  isFirstOfADay = ({ mails }: Person) => mails!.at <= this.now - DAY

  mayAskAgain = (person: Person) =>
    (person.mails!.times < RESEND_MOST || this.isFirstOfADay(person)) &&
    person.work.every(
      ({ state, settledAt }) =>
        state === 'abandoned' || (state === 'delivered' && settledAt! <= this.now - RESEND_AFTER),
    )

  lease(work: Work, { token, attempts, doubt }: Delivery): void {
    assert.deepEqual([attempts, doubt], [work.attempts, work.doubt || work.token !== null])
    Object.assign(work, { token, doubt, due: this.now + LEASE })
  }

  /** Whether the attempt has its lease. */
  settle({ token, contact }: Delivery, settlement: Settlement): boolean {
    const person = this.find(contact.email)
    const work = person?.work.find(each => each.token === token && each.state === 'waiting')
    if (person === undefined || work === undefined) return false
    if (settlement.is === 'removed') this.remove(person)
    else if (settlement.is === 'listed') {
      person.work = []
      person.state = 'listed'
      if (settlement.joined) this.join(person)
    } else {
      const waits = settlement.is === 'retry'
      Object.assign(work, { token: null, state: waits ? 'waiting' : settlement.is, settledAt: waits ? null : this.now })
      Object.assign(work, { due: this.now + (waits ? WAIT : 0), doubt: waits && settlement.doubt })
      if (!waits || settlement.counts) work.attempts++
    }
    return true
  }

  remove(person: Person): void {
    this.people = this.people.filter(each => each !== person)
  }

  isLate = ({ state, work }: Person) =>
    state === 'unconfirmed' && work.some(each => each.state === 'delivered' && each.settledAt! < this.now - WITHIN)
}

/** Lives a history in a store and in the model, which must agree after each step. */
async function live({ open, sql }: Place, { provider, confirmation, above, steps }: History): Promise<void> {
  const clock = handClock()
  const targets: SignupTargets = { eventName: 'waitlist.joined', provider, destinations, confirmation }
  const holds = above === null ? null : { above: { count: above, time: DAY }, suspicious: false }
  const start = () => open({ provider, destinations, confirmation, holds, clock: clock.read })
  const model = new Model(targets, above)
  for (const table of ['contact', 'erased']) await sql(`delete from ${table}`)
  let store = await start()
  let late: Delivery[] = []

  const finish = async (delivery: Delivery, end: End) => {
    if (end === 'nothing') return void late.push(delivery)
    const settlement = settlementOf(delivery.kind, end)
    assert.equal(await store.settle(delivery, settlement), model.settle(delivery, settlement))
  }

  async function take(step: Step): Promise<void> {
    const email = 'who' in step ? emailOf(step.who) : ''
    const person = model.find(email)
    const database = { ...store, name: 'model', requireRoom() {} }
    switch (step.do) {
      case 'sign up':
        return signUp(email, step.end)
      case 'deliver': {
        const due = model.people.flatMap(person =>
          person.work
            .filter(({ to, state, due }) => to === step.to && state === 'waiting' && due <= model.now)
            .map(work => ({ name: `${person.email} ${work.kind}`, work })),
        )
        const claimed = await store.claim(step.to, 100)
        const named = new Map(claimed.map(each => [`${each.contact.email} ${each.kind}`, each]))
        assert.deepEqual([...named.keys()].sort(), due.map(({ name }) => name).sort())
        for (const { name, work } of due) model.lease(work, named.get(name)!)
        for (const each of claimed) await finish(each, step.end)
        return
      }
      case 'settle late': {
        const now = late.splice(0)
        late = []
        for (const each of now) await finish(each, step.end)
        return
      }
      case 'confirm': {
        if (person === undefined || person.id === null) return
        const { id, state, createdAt } = person
        const answer = await store.transaction(tx => confirm(tx, { id, createdAt: new Date(createdAt) }, targets))
        assert.equal(answer, state === 'unconfirmed' ? 'now' : 'before')
        if (state === 'unconfirmed') model.begin(person, true)
        return
      }
      case 'erase': {
        const traces = await store.transaction(tx => erase(tx, email))
        assert.equal(traces?.state, person?.state)
        if (person === undefined) return
        model.erased.add(email)
        return model.remove(person)
      }
      case 'invite': {
        const chosen = model.people.filter(({ state }) => state === 'listed').slice(0, step.most)
        const news = { eventName: 'waitlist.invited', destinations }
        assert.equal((await invite(database, {}, step.most, news)).done, chosen.length)
        for (const each of chosen) {
          each.state = 'invited'
          model.notify(each, 'invited', destinations)
        }
        return
      }
      case 'import': {
        const expected: Record<ImportOutcome, number> = { added: 0, existing: 0, erased: 0 }
        const rows = step.people.map(who => ({ signup: signup('Visitor', emailOf(who)) }))
        for (const { email } of rows.map(({ signup }) => signup)) {
          if (model.find(email) !== undefined) expected.existing++
          else if (model.erased.has(email)) expected.erased++
          else {
            expected.added++
            const added = model.add(email, null)
            if (step.isNews) model.begin(added, false)
          }
        }
        const batches = (async function* () {
          yield rows
        })()
        const options = { targets: step.isNews ? targets : null, dryRun: false }
        return assert.deepEqual(await importContacts(database, batches, options), expected)
      }
      case 'release': {
        const held = model.people.filter(({ state }) => state === 'held')
        assert.equal((await release(database, {}, targets)).done, held.length)
        for (const each of held) model.begin(each, false)
        return
      }
      case 'expire': {
        const gone = model.people.filter(model.isLate)
        assert.equal(await store.transaction(tx => expire(tx, tx.now - WITHIN, 100)), gone.length)
        for (const each of gone) model.remove(each)
        return
      }
      case 'restart':
        await store.close()
        store = await start()
        return
      case 'pass':
        clock.pass(step.time)
    }
  }

  async function signUp(email: string, end: End): Promise<void> {
    const person = model.find(email)
    const answer = await store.admit(signup('Visitor', email))
    if (person === undefined) {
      const isHeld = model.isFull()
      const [stored] = (await contactsIn(store)).slice(-1)
      const added = model.add(email, stored!.id)
      if (isHeld) {
        added.state = 'held'
        return assert.deepEqual(answer, { is: 'held now', reason: 'above-limit' })
      }
      model.begin(added, false)
      if (answer.is !== 'pending now') {
        const expected = confirmation === null ? { is: 'listed now' } : { is: 'unconfirmed', sends: true }
        return assert.deepEqual(answer, { ...expected, contactId: added.id })
      }
      model.lease(added.work[0]!, answer.delivery)
      return finish(answer.delivery, end)
    }
    const { state } = person
    if (answer.is === 'unconfirmed') {
      const sends = model.mayAskAgain(person)
      if (sends) model.ask(person, model.isFirstOfADay(person) ? 1 : person.mails!.times + 1)
      return assert.deepEqual([state, answer.sends], ['unconfirmed', sends])
    }
    const said = { pending: 'still pending', held: 'still held', listed: 'already listed', invited: 'already listed' }
    assert.equal(answer.is, state === 'unconfirmed' ? state : said[state])
  }

  try {
    for (const step of steps) {
      model.now = clock.read()
      await take(step)
      await agree(store, model)
    }
  } finally {
    await store.close()
  }
}

const contactsIn = async (store: Store) => (await Array.fromAsync(contactPages(store.read, {}))).flat()

async function agree(store: Store, model: Model): Promise<void> {
  const contacts = await contactsIn(store)
  const emails = new Map(contacts.map(({ id, email }) => [id, email]))
  assert.deepEqual(
    contacts.map(each => ({
      email: each.email,
      createdAt: each.createdAt.getTime(),
      state: each.state,
      isHeld: each.reason !== undefined,
      hasEvent: each.event !== undefined,
      isConfirmed: each.confirmedAt !== undefined,
      mails: each.confirmation === undefined ? null : { ...each.confirmation, at: each.confirmation.at.getTime() },
    })),
    model.people.map(({ email, createdAt, state, hasEvent, isConfirmed, mails }) => {
      return { email, createdAt, state, isHeld: state === 'held', hasEvent, isConfirmed, mails }
    }),
  )
  const deliveries = await store.read(tx => listDeliveries(tx, {}, 1_000))
  assert.deepEqual(
    deliveries
      .map(({ contactId, kind, destination, state, attempts, due }) =>
        [emails.get(contactId), kind, destination, state, attempts, state === 'waiting' ? due.getTime() : 0].join(),
      )
      .sort(),
    model.people
      .flatMap(({ email, work }) =>
        work.map(({ kind, to, state, attempts, due }) =>
          [email, kind, to, state, attempts, state === 'waiting' ? due : 0].join(),
        ),
      )
      .sort(),
  )
  const { contacts: counted } = await store.counts()
  for (const [state, count] of Object.entries(counted))
    assert.equal(count, model.people.filter(each => each.state === state).length, state)
}

forEachEngine('any history', (place, engine) => {
  test('is that of a simple model, over restarts', async t => {
    const here = await place(t)
    await (await here.open()).close()
    const options = {
      seed: seedOf(t),
      numRuns: (engine === 'sqlite' ? 30 : 8) * (isSlow ? 10 : 1),
      endOnFailure: !isSlow,
    }
    await fc.assert(
      fc.asyncProperty(histories, history => live(here, history)),
      { ...options, examples },
    )
  })
})
