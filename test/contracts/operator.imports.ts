import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { ERASURE, erasureHash } from '../../src/stores/operator/erasure.ts'
import type { Entry, Imported, ImportWish } from '../../src/stores/operator/imports.ts'
import type { Operator } from '../../src/stores/operator/operator.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { course, type MakeDesk, type OpenDesk, openDesk } from './operator.desk.ts'
import { type RunSql, signup } from './store.place.ts'

const entry = (name: string, email: string, more: Partial<Entry> = {}): Entry => ({
  signup: signup(name, email),
  state: 'listed',
  ...more,
})

async function add(
  { operator }: Pick<OpenDesk, 'operator'>,
  entries: readonly Entry[],
  wish: Partial<ImportWish> = {},
) {
  const none = { ...course, announcement: null, dryRun: false, made() {} }
  const batches = async function* () {
    for (let i = 0; i < entries.length; i += 700) yield entries.slice(i, i + 700)
  }
  return operator.importContacts(batches(), { ...none, ...wish })
}

const stored = (sql: RunSql) =>
  sql('select name, email, state, event_name, provider_id from contact order by number') as Promise<
    Record<string, unknown>[]
  >

export function importContract(
  name: string,
  make: MakeDesk,
  nowhere: (t: TestContext) => Promise<Operator>,
  isMade: boolean,
): void {
  const open = (t: TestContext) => openDesk(make, t, { provider: null, destinations: [] })

  describe(`imports into ${name}`, () => {
    test('ids, times to the millisecond, states and sources are kept, in the order of the entries; nobody is told', async t => {
      const desk = await open(t)
      const createdAt = new Date('2025-03-04T05:06:07.089Z')
      const id = '01956c1f-0b51-7abc-8def-0123456789ab'
      const source = { utm_source: 'news"letter', ref: 'ünï' }
      const entries = [
        entry('Zoe', 'Zoe@Example.com', { id, createdAt, source }),
        entry("O'Neill \\ {x}", 'mid@example.com', { state: 'pending' }),
        entry('Ada', 'ada@example.com'),
      ]
      assert.deepEqual(await add(desk, entries), { added: 3, existing: 0, erased: 0 })
      const contacts = await Array.fromAsync(await desk.operator.contacts())
      assert.deepEqual(
        contacts.map(({ name, email, state }) => [name, email, state]),
        [
          ['Zoe', 'Zoe@Example.com', 'listed'],
          ["O'Neill \\ {x}", 'mid@example.com', 'pending'],
          ['Ada', 'ada@example.com', 'listed'],
        ],
      )
      assert.equal(contacts[0]!.id, id)
      assert.deepEqual(contacts[0]!.createdAt, createdAt)
      assert.ok(Math.abs(contacts[2]!.createdAt.getTime() - Date.now()) < 60_000)
      assert.match(contacts[2]!.id, /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
      const [row] = await desk.sql('select source, event_name, event_at from contact where source is not null')
      assert.deepEqual(typeof row!.source === 'string' ? JSON.parse(row!.source) : row!.source, source)
      assert.deepEqual([row!.event_name, row!.event_at], [null, null])
      assert.deepEqual(await desk.sql('select * from delivery'), [])
      assert.deepEqual(await desk.store.admit(signup('Zoe', 'zoe@example.com')), { is: 'already listed' })
    })

    test('the list wins over the file, and the first entry of an address over the next; again, nothing changes', async t => {
      const desk = await open(t)
      await desk.store.admit(signup('Ada', 'Ada@example.com'))
      const entries = [
        entry('Not Ada', 'ADA@example.com'),
        entry('Bob', 'Bob@example.com'),
        entry('Not Bob', 'bob@EXAMPLE.com'),
      ]
      assert.deepEqual(await add(desk, entries, { dryRun: true }), { added: 1, existing: 2, erased: 0 })
      assert.deepEqual(
        (await stored(desk.sql)).map(({ name }) => name),
        ['Ada'],
        'a dry run writes nothing',
      )
      assert.deepEqual(await add(desk, entries), { added: 1, existing: 2, erased: 0 })
      const after = await stored(desk.sql)
      assert.deepEqual(
        after.map(({ name, email }) => [name, email]),
        [
          ['Ada', 'Ada@example.com'],
          ['Bob', 'Bob@example.com'],
        ],
      )
      assert.deepEqual(await add(desk, entries), { added: 0, existing: 3, erased: 0 })
      assert.deepEqual(await stored(desk.sql), after)
    })

    test('an entry with the code of somebody else ends it with a sentence, and is not counted as one that is there', async t => {
      const desk = await open(t)
      const invitation = { code: 'c0deAbcdefgh-jklm_opqr', at: new Date('2026-01-02') }
      const invited = (email: string) => entry('Ada', email, { state: 'invited', invitation })
      const refused = /^bob@example\.com has the code of ada@example\.com, .*Give bob@example\.com another code/
      const isRefused = (entries: readonly Entry[]) =>
        assert.rejects(add(desk, entries), ({ message }: OperatorError) => refused.test(message))
      await isRefused([invited('ada@example.com'), invited('bob@example.com')])
      assert.deepEqual(await stored(desk.sql), [])
      await add(desk, [invited('ada@example.com')])
      await isRefused([entry('Cy', 'cy@example.com'), invited('bob@example.com')])
      assert.equal((await stored(desk.sql)).length, 1)
      assert.deepEqual(await add(desk, [invited('Ada@example.com')]), { added: 0, existing: 1, erased: 0 })
    })

    test('an erased address stays away, unless its entry is certainly of a later time', async t => {
      const desk = await open(t)
      const at = Date.parse('2026-01-01T00:00:00Z')
      await desk.sql(`insert into secret (name, value) values ('${ERASURE}', 'abc')`)
      for (const who of ['eve', 'fay', 'gus', 'hal']) {
        const hash = erasureHash('abc', `${who}@example.com`)
        await desk.sql(`insert into erased (hash, erased_at) values ('${hash}', ${desk.time(at)})`)
      }
      await desk.store.admit(signup('Hal', 'hal@example.com'))
      const entries = [
        entry('Eve', 'EVE@example.com'),
        entry('Fay', 'fay@example.com', { createdAt: new Date(at) }),
        entry('Gus', 'gus@example.com', { createdAt: new Date(at) }),
        entry('Gus again', 'gus@example.com', { createdAt: new Date(at + 1) }),
        entry('Hal before', 'hal@example.com', { createdAt: new Date(at - 1) }),
        entry('Ida', 'ida@example.com'),
      ]
      const expected = { added: 2, existing: 1, erased: 3 }
      assert.deepEqual(await add(desk, entries, { dryRun: true }), expected)
      assert.deepEqual(await add(desk, entries), expected)
      const names = (await stored(desk.sql)).map(({ name }) => name)
      assert.deepEqual(names, ['Hal', 'Gus again', 'Ida'])
    })

    test('announced without a provider, contacts get an event, and a delivery to each destination', async t => {
      const desk = await open(t)
      const announcement = { eventName: 'joined', provider: null, destinations: ['webhook', 'slack'], asks: null }
      await desk.store.admit(signup('Ada', 'ada@example.com'))
      const entries = [entry('Ada', 'ada@example.com'), entry('Bob', 'bob@example.com', { state: 'pending' })]
      assert.deepEqual(await add(desk, entries, { announcement }), { added: 1, existing: 1, erased: 0 })
      const bob = { name: 'Bob', email: 'bob@example.com', state: 'listed', event_name: 'joined', provider_id: null }
      assert.deepEqual({ ...(await stored(desk.sql))[1] }, bob)
      for (const destination of announcement.destinations) {
        const [delivery, ...others] = await desk.store.claim(destination, 10)
        assert.deepEqual([delivery?.contact.name, delivery?.attempts, others], ['Bob', 0, []], destination)
        assert.ok(Math.abs(delivery!.contact.event!.at.getTime() - Date.now()) < 60_000)
      }
    })

    test('announced with a provider, contacts wait for it as a new signup does', async t => {
      const desk = await open(t)
      const announcement = { eventName: 'joined', provider: 'provider', destinations: ['webhook'], asks: null }
      await add(desk, [entry('Bob', 'bob@example.com')], { announcement })
      assert.deepEqual(
        (await desk.operator.deliveries({ limit: 9 })).map(({ destination, attempts, eventId }) => [
          destination,
          attempts,
          eventId,
        ]),
        [['provider', 0, null]],
      )
      assert.equal((await desk.operator.person('bob@example.com')).contact?.state, 'pending')
    })

    test('who is held comes back held with the reason, also announced, and nobody is told', async t => {
      const desk = await open(t)
      const announcement = { eventName: 'joined', provider: null, destinations: ['webhook'], asks: null }
      const held = { state: 'held', reason: 'same-mailbox' } as const
      await add(desk, [entry('Eve', 'eve@example.com', held), entry('Bob', 'bob@example.com')], { announcement })
      await add(desk, [entry('Mal', 'mal@example.com', held)])
      const contacts = await Array.fromAsync(await desk.operator.contacts())
      assert.deepEqual(
        contacts.map(({ name, state, reason, event }) => [name, state, reason, event?.name]),
        [
          ['Eve', 'held', 'same-mailbox', undefined],
          ['Bob', 'listed', undefined, 'joined'],
          ['Mal', 'held', 'same-mailbox', undefined],
        ],
      )
      assert.deepEqual(
        (await desk.store.claim('webhook', 10)).map(({ contact }) => contact.name),
        ['Bob'],
      )
    })

    test('the mailbox behind an address is stored if it is one that is known; nobody is held for it', async t => {
      const desk = await open(t)
      const spellings = ['A.da+1@GMail.com', 'ada@googlemail.com', 'bob@example.com'].map(email => entry('Ada', email))
      assert.equal((await add(desk, spellings)).added, 3)
      const rows = await desk.sql('select state, mailbox from contact order by number')
      assert.deepEqual(
        rows.map(({ state, mailbox }) => [state, mailbox]),
        ['ada@gmail.com', 'ada@gmail.com', null].map(mailbox => ['listed', mailbox]),
      )
    })

    test('thousands are added in the order of their entries, beside signups; a signal ends it between two steps', async t => {
      const desk = await open(t)
      const many = Array.from({ length: 3_000 }, (_, i) => entry(`Visitor ${i}`, `${(i * 7919) % 3_000}@example.com`))
      const leaving = new AbortController()
      const progress = ({ added }: Imported) => {
        if (added > 0) leaving.abort()
      }
      const { added } = await add(desk, many, { progress, signal: leaving.signal })
      assert.ok(added > 0 && added < many.length, `${added} were added`)
      const importing = add(desk, many)
      const signups = Array.from({ length: 50 }, (_, i) => desk.store.admit(signup('Eve', `eve-${i}@example.com`)))
      for (const { is } of await Promise.all(signups)) assert.equal(is, 'listed now')
      assert.deepEqual(await importing, { added: many.length - added, existing: added, erased: 0 })
      const contacts = await Array.fromAsync(await desk.operator.contacts())
      const names = contacts.map(({ name }) => name).filter(name => name !== 'Eve')
      assert.deepEqual(
        names,
        many.map(({ signup }) => signup.name),
      )
    })

    test(`without a store it ${isMade ? 'makes one and says so, but not in a dry run' : 'is refused with a sentence'}`, async t => {
      const operator = await nowhere(t)
      const told: string[] = []
      const once = (dryRun: boolean) =>
        add({ operator }, [entry('Ada', 'ada@example.com')], { dryRun, made: place => told.push(place) })
      if (!isMade) {
        for (const dryRun of [true, false]) await assert.rejects(once(dryRun), OperatorError)
        return
      }
      assert.equal((await once(true)).added, 1)
      await assert.rejects(operator.addedLast({}, 9), OperatorError)
      assert.equal((await once(false)).added, 1)
      assert.equal((await once(false)).existing, 1)
      assert.equal((await operator.addedLast({}, 9)).length, 1)
      assert.equal(told.length, 2)
    })
  })
}
