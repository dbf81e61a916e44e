import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { ImportRow } from '../../src/import/store.ts'
import { forEachEngine, type MakePlace, type Place, signup, uuidV7 } from '../store/place.ts'

const row = (name: string, email: string, createdAt?: Date): ImportRow => ({ signup: signup(name, email), createdAt })

const add = ({ operator }: Pick<Place, 'operator'>, rows: readonly ImportRow[], dryRun = false) => {
  const batches = (async function* () {
    for (let i = 0; i < rows.length; i += 500) yield rows.slice(i, i + 500)
  })()
  return operator.importContacts(batches, { targets: null, dryRun })
}

const contactsOf = ({ operator }: Pick<Place, 'operator'>) => Array.fromAsync(operator.contacts({}))
const namesIn = async (here: Pick<Place, 'operator'>) => (await contactsOf(here)).map(({ name }) => name)

async function open(place: MakePlace, t: TestContext) {
  const here = await place(t)
  return { ...here, store: await here.open() }
}

forEachEngine('imports', place => {
  test('times to the millisecond and sources are kept, in the order of the rows; nobody is notified', async t => {
    const here = await open(place, t)
    const createdAt = new Date('2025-03-04T05:06:07.089Z')
    const source = { utm_source: 'news"letter', ref: 'ünï' }
    const zoe = row('Zoe', 'Zoe@Example.com', createdAt)
    const rows = [{ ...zoe, signup: { ...zoe.signup, source } }, row("O'Neill \\ {x}", 'mid@example.com')]
    assert.deepEqual(await add(here, rows), { added: 2, existing: 0, erased: 0 })
    const [first, second] = await contactsOf(here)
    assert.deepEqual([first!.name, first!.email, first!.state], ['Zoe', 'Zoe@Example.com', 'listed'])
    assert.deepEqual([first!.createdAt, first!.source, first!.event], [createdAt, source, undefined])
    assert.equal(second!.name, "O'Neill \\ {x}")
    assert.ok(Math.abs(second!.createdAt.getTime() - Date.now()) < 60_000)
    assert.match(second!.id, uuidV7)
    assert.deepEqual(await here.operator.deliveries({ limit: 9 }), [])
    assert.deepEqual(await here.store.admit(signup('Zoe', 'zoe@example.com')), { is: 'already listed' })
  })

  test('the list wins over the file, and the first row of an address over the next; again, nothing changes', async t => {
    const here = await open(place, t)
    await here.store.admit(signup('Ada', 'Ada@example.com'))
    const rows = [row('Not Ada', 'ADA@example.com'), row('Bob', 'Bob@example.com'), row('Not Bob', 'bob@EXAMPLE.com')]
    const once = { added: 1, existing: 2, erased: 0 }
    assert.deepEqual(await add(here, rows, true), once)
    assert.deepEqual(await namesIn(here), ['Ada'], 'a dry run writes nothing')
    assert.deepEqual(await add(here, rows), once)
    const after = await contactsOf(here)
    assert.deepEqual(
      after.map(({ email }) => email),
      ['Ada@example.com', 'Bob@example.com'],
    )
    assert.deepEqual(await add(here, rows), { added: 0, existing: 3, erased: 0 })
    assert.deepEqual(await contactsOf(here), after)
  })

  test('the mailbox behind an address is stored; nobody is held for it', async t => {
    const here = await open(place, t)
    const spellings = ['A.da+1@GMail.com', 'ada@googlemail.com', 'bob@example.com'].map(email => row('Ada', email))
    assert.equal((await add(here, spellings)).added, 3)
    const rows = await here.sql<{ state: string; mailbox: string | null }>(
      'select state, mailbox from contact order by number',
    )
    assert.deepEqual(
      rows.map(({ state, mailbox }) => [state, mailbox]),
      ['ada@gmail.com', 'ada@gmail.com', null].map(mailbox => ['listed', mailbox]),
    )
  })

  test('thousands are added in the order of their rows, beside signups', async t => {
    const here = await open(place, t)
    const many = Array.from({ length: 2_000 }, (_, i) => row(`Visitor ${i}`, `${(i * 7919) % 2_000}@example.com`))
    const importing = add(here, many)
    const signups = Array.from({ length: 50 }, (_, i) => here.store.admit(signup('Eve', `eve-${i}@example.com`)))
    for (const { is } of await Promise.all(signups)) assert.equal(is, 'listed now')
    assert.deepEqual(await importing, { added: many.length, existing: 0, erased: 0 })
    assert.deepEqual(
      (await namesIn(here)).filter(name => name !== 'Eve'),
      many.map(({ signup }) => signup.name),
    )
  })
})
