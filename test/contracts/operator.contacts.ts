import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { ContactFilter } from '../../src/stores/operator/contacts.ts'
import { ERASURE, erasureHash } from '../../src/stores/operator/erasure.ts'
import { type Contact, eventId as eventIdOf } from '../../src/waitlist/rules/contact.ts'
import { type MakeDesk, type OpenDesk, openDesk } from './operator.desk.ts'
import { bare, pendingNow, signup } from './store.place.ts'

const listed = { is: 'listed', joined: true } as const
const emails = (contacts: Iterable<Contact>) => [...contacts].map(({ email }) => email)

/** Puts contacts on the list of a store with a provider, in this order. */
async function list({ store }: OpenDesk, people: readonly (readonly [name: string, email: string])[]): Promise<void> {
  const deliveries = []
  for (const [name, email] of people) deliveries.push(await pendingNow(store, email, name))
  await Promise.all(deliveries.map(each => store.settle(each, { ...listed, providerId: `id-${each.number}` })))
}

export function contactsContract(name: string, make: MakeDesk): void {
  describe(`contacts that an operator finds in ${name}`, () => {
    test('by state, time and source; those who joined first come first, or last', async t => {
      const desk = await openDesk(make, t)
      await list(desk, [
        ['Ada', 'ada@example.com'],
        ['Bob', 'bob@example.com'],
        ['Cyd', 'cyd@example.com'],
      ])
      await pendingNow(desk.store, 'dot@example.com')
      const { operator, sql, time } = desk
      await sql(`update contact set created_at = ${time(0)} where email = 'bob@example.com'`)
      const sources = { ada: { ref: 'x' }, bob: { utm_source: 'x', ref: 'y' }, cyd: { utm_medium: 'x' } }
      for (const [who, source] of Object.entries(sources)) {
        await sql(`update contact set source = '${JSON.stringify(source)}' where email = '${who}@example.com'`)
      }
      const expect = async (filter: ContactFilter, who: readonly string[]) => {
        const all = who.map(each => `${each}@example.com`)
        assert.deepEqual(emails(await Array.fromAsync(await operator.contacts(filter))), all)
        assert.deepEqual(emails(await operator.addedLast(filter, 9)), all.toReversed())
        assert.deepEqual(emails(await operator.addedLast(filter, 1)), all.slice(-1))
      }
      await expect({}, ['ada', 'bob', 'cyd', 'dot'])
      await expect({ state: 'listed' }, ['ada', 'bob', 'cyd'])
      await expect({ state: 'pending' }, ['dot'])
      await expect({ since: new Date(0), until: new Date(1) }, ['bob'])
      await expect({ until: new Date(0) }, [])
      await expect({ since: new Date(1), state: 'listed' }, ['ada', 'cyd'])
      await expect({ since: new Date(Date.now() + 60_000) }, [])
      await expect({ source: 'x' }, ['ada', 'bob'])
      await expect({ source: 'y' }, [])
      await expect({ source: "x' or 1 = 1 --" }, [])
      await expect({ search: 'BO', source: 'x' }, ['bob'])
      await expect({ search: 'a', until: new Date(1) }, ['bob'])
    })

    test('by a part of the name or the address, case-insensitive for ASCII letters; nothing in it is a pattern', async t => {
      const desk = await openDesk(make, t)
      const names = ['Zoë Eclair', 'Иван Петров', '李小龍', '100 % [a-z]*?^_.\\']
      await list(
        desk,
        names.map((name, i) => [name, `Visitor.${i}+tag@Example.com`] as const),
      )
      const found = async (search: string) => (await desk.operator.addedLast({ search }, 99)).map(({ name }) => name)
      for (const [search, ...expected] of [
        ['zoë eCLAIR', names[0]],
        ['zoe'],
        ['Петров', names[1]],
        ['小', names[2]],
        ['% [A-Z]*?^_.\\', names[3]],
        ['*', names[3]],
        ['?', names[3]],
        ['_', names[3]],
        ['[a', names[3]],
        ['\\', names[3]],
        ['0*'],
        ['[0-9]'],
        ['visitor.3+TAG@example.COM', names[3]],
        ['a@b'],
        ["' or 1 = 1 --"],
        ['x'.repeat(255)],
      ] as const) {
        assert.deepEqual(await found(search!), expected, search)
      }
      assert.equal((await found('@EXAMPLE')).length, names.length)
    })

    test('a page at a time: who was removed meanwhile is missing, and who joined meanwhile is not among them', async t => {
      const { store, operator, sql } = await openDesk(make, t)
      const crowd = Array.from({ length: 5_100 }, (_, i) => signup('Visitor', `visitor-${i}@example.com`))
      await Promise.all(crowd.map(each => store.admit(each)))
      const before = emails(await Array.fromAsync(await operator.contacts()))
      assert.equal(before.length, crowd.length)
      const read: string[] = []
      for await (const { email } of await operator.contacts({ search: 'VISITOR' })) {
        if (read.push(email) > 1) continue
        await sql(`delete from contact where email = '${before.at(-1)}'`)
        await store.admit(signup('Visitor', 'visitor-later@example.com'))
      }
      assert.ok(read.every((email, i) => email === before[i]))
      assert.equal(read.length, before.length - 1)
    })

    test('a person: all that is in the row, their deliveries, and whether they were erased', async t => {
      const desk = await openDesk(make, t)
      await list(desk, [['Ada', 'Ada@Example.com']])
      await pendingNow(desk.store, 'bob@example.com')
      const { store, operator, sql, time } = desk
      const source = { utm_source: 'news', ref: 'x' }
      await sql(`update contact set source = '${JSON.stringify(source)}' where name = 'Ada'`)
      const [delivery] = await store.claim('webhook', 1)
      await store.settle(delivery!, { is: 'delivered' })
      const nobody = { contact: undefined, deliveries: [], erasedAt: undefined }
      assert.deepEqual(await operator.person('nobody@example.com'), nobody)

      const { contact, deliveries, erasedAt } = await operator.person('aDA@example.com')
      const { event, createdAt, ...rest } = bare(contact!)
      const { id } = delivery!.contact
      const expected = { id, name: 'Ada', email: 'Ada@Example.com', state: 'listed', source, providerId: 'id-1' }
      assert.deepEqual(rest, expected)
      assert.equal(event?.name, 'waitlist.joined')
      assert.ok(createdAt! <= event.at && event.at.getTime() <= Date.now() + 60_000)
      assert.deepEqual(
        deliveries.map(({ destination, state, contactId, eventId }) => [destination, state, contactId, eventId]),
        [
          ['webhook', 'delivered', id, eventIdOf({ id }, 'joined')],
          ['crm', 'waiting', id, eventIdOf({ id }, 'joined')],
        ],
      )
      assert.deepEqual(
        deliveries.toReversed(),
        (await operator.deliveries({ limit: 9 })).filter(each => each.contactId === id),
      )
      assert.equal(erasedAt, undefined)

      const pending = await operator.person('bob@example.com')
      assert.deepEqual([pending.contact?.event, pending.deliveries.length], [undefined, 1])

      const secret = 'ab'.repeat(32)
      await sql(`insert into secret (name, value) values ('${ERASURE}', '${secret}')`)
      for (const who of ['gone@example.com', 'ada@example.com']) {
        await sql(`insert into erased (hash, erased_at) values ('${erasureHash(secret, who)}', ${time(0)})`)
      }
      assert.deepEqual(await operator.person('Gone@example.com'), { ...nobody, erasedAt: new Date(0) })
      const back = await operator.person('ada@example.com')
      assert.deepEqual(back, { contact, deliveries, erasedAt: new Date(0) })
      assert.deepEqual(await operator.person('bob@example.com'), pending)
    })
  })
}
