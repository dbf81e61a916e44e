import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Contact, eventId, type Source } from '../../src/signup/contact.ts'
import type { ContactFilter } from '../../src/store/contacts.ts'
import type { Store } from '../../src/store/store.ts'
import { bare, forEachEngine, only, type Place, pendingNow, signup } from './place.ts'

const emails = (contacts: readonly Contact[]) => contacts.map(({ email }) => email)
const all = (operator: Place['operator'], filter: ContactFilter = {}) => Array.fromAsync(operator.contacts(filter))

/** Puts somebody on the list of a store that has a provider. */
async function list(store: Store, name: string, email: string, source?: Source): Promise<void> {
  const admission = await store.admit({ ...signup(name, email), ...(source && { source }) })
  assert.ok(admission.is === 'pending now')
  await store.settle(admission.delivery, { is: 'listed', joined: true, providerId: `id-${name}` })
}

forEachEngine('contacts that an operator finds', place => {
  test('by state, time, source and address; those who joined first come first, or last', async t => {
    const here = await place(t)
    const store = await here.open({ provider: 'provider', trackSources: true })
    await list(store, 'Ada', 'ada@example.com', { ref: 'x' })
    await list(store, 'Bob', 'bob@example.com', { utm_source: 'x', ref: 'y' })
    await list(store, 'Cyd', 'cyd@example.com', { utm_medium: 'x' })
    await pendingNow(store, 'dot@example.com')
    const { operator, sql } = here
    await sql("update contact set created_at = 0 where email = 'bob@example.com'")
    const expect = async (filter: ContactFilter, who: readonly string[]) => {
      const expected = who.map(each => `${each}@example.com`)
      assert.deepEqual(emails(await all(operator, filter)), expected)
      assert.deepEqual(emails(await operator.addedLast(filter, 9)), expected.toReversed())
      assert.deepEqual(emails(await operator.addedLast(filter, 1)), expected.slice(-1))
      assert.equal(await operator.count(filter), expected.length)
    }
    await expect({}, ['ada', 'bob', 'cyd', 'dot'])
    await expect({ state: 'listed' }, ['ada', 'bob', 'cyd'])
    await expect({ state: 'pending' }, ['dot'])
    await expect({ since: new Date(0), until: new Date(1) }, ['bob'])
    await expect({ until: new Date(0) }, [])
    await expect({ since: new Date(1), state: 'listed' }, ['ada', 'cyd'])
    await expect({ source: 'x' }, ['ada', 'bob'])
    await expect({ source: 'y' }, [])
    await expect({ source: "x' or 1 = 1 --" }, [])
    await expect({ search: 'BO', source: 'x' }, ['bob'])
    await expect({ search: 'a', until: new Date(1) }, ['bob'])
    await expect({ addresses: ['DOT@example.com', 'ada@example.com', 'nobody@example.com'] }, ['ada', 'dot'])
    await expect({ addresses: [] }, [])
  })

  test('by a part of the name or the address, whatever the case of ASCII letters; nothing in it is a pattern', async t => {
    const here = await place(t)
    const store = await here.open()
    const names = ['Zoë Eclair', 'Иван Петров', '李小龍', '100 % [a-z]*?^_.\\']
    for (const [i, name] of names.entries()) await store.admit(signup(name, `Visitor.${i}+tag@Example.com`))
    const found = async (search: string) => (await here.operator.addedLast({ search }, 99)).map(({ name }) => name)
    for (const [search, ...expected] of [
      ['zoë eCLAIR', names[0]],
      ['zoe'],
      ['Петров', names[1]],
      ['小', names[2]],
      ['% [A-Z]*?^_.\\', names[3]],
      ['_', names[3]],
      ['0*'],
      ['[0-9]'],
      ['visitor.3+TAG@example.COM', names[3]],
      ["' or 1 = 1 --"],
      ['x'.repeat(255)],
    ] as const) {
      assert.deepEqual(await found(search), expected, search)
    }
    assert.equal((await found('@EXAMPLE')).length, names.length)
  })

  test('a page at a time: who was removed meanwhile is missing, and who joined meanwhile is not among them', async t => {
    const here = await place(t)
    const store = await here.open()
    const crowd = Array.from({ length: 2_100 }, (_, i) => signup('Visitor', `visitor-${i}@example.com`))
    await Promise.all(crowd.map(each => store.admit(each)))
    const before = emails(await all(here.operator))
    assert.equal(before.length, crowd.length)
    const read: string[] = []
    for await (const { email } of here.operator.contacts({ search: 'VISITOR' })) {
      if (read.push(email) > 1) continue
      await here.sql('delete from contact where email = $1', [before.at(-2)!])
      await store.admit(signup('Visitor', 'visitor-later@example.com'))
    }
    assert.ok(read.length === 2_099 && !read.includes(before.at(-2)!) && !read.includes('visitor-later@example.com'))
  })

  test('a person: all that is in the row, their deliveries, and whether they were erased', async t => {
    const here = await place(t)
    const { operator } = here
    const store = await here.open({ provider: 'provider', destinations: ['webhook', 'crm'], trackSources: true })
    const source = { utm_source: 'news', ref: 'x' }
    await list(store, 'Ada', 'Ada@Example.com', source)
    const delivery = await only(store)
    await store.settle(delivery, { is: 'delivered' })
    const nobody = { contact: undefined, deliveries: [], erasedAt: undefined }
    assert.deepEqual(await operator.person('nobody@example.com'), nobody)

    const ada = await operator.person('aDA@example.com')
    const { event, createdAt, ...rest } = bare(ada.contact!)
    const { id } = delivery.contact
    const known = { id, name: 'Ada', email: 'Ada@Example.com', state: 'listed', source, providerId: 'id-Ada' }
    assert.deepEqual(rest, known)
    assert.equal(event?.name, 'waitlist.joined')
    assert.ok(createdAt! <= event.at && event.at.getTime() <= Date.now() + 60_000)
    assert.deepEqual(
      ada.deliveries.map(({ destination, state, contactId, eventId }) => [destination, state, contactId, eventId]),
      [
        ['webhook', 'delivered', id, eventId({ id }, 'joined')],
        ['crm', 'waiting', id, eventId({ id }, 'joined')],
      ],
    )

    await operator.erase('ada@example.com')
    const gone = await operator.person('ADA@example.com')
    assert.deepEqual({ ...gone, erasedAt: undefined }, nobody)
    assert.ok(Math.abs(Date.now() - gone.erasedAt!.getTime()) < 60_000)
    await list(store, 'Ada', 'ada@example.com')
    const back = await operator.person('ada@example.com')
    assert.deepEqual([back.contact?.name, back.erasedAt], ['Ada', gone.erasedAt])
  })
})
