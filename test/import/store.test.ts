import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { OperatorError } from '../../src/config/operator.ts'
import type { ImportOptions, ImportRow } from '../../src/import/store.ts'
import { forEachEngine, type MakePlace, type Place, signup, uuidV7 } from '../store/place.ts'

const row = (name: string, email: string, more: Partial<ImportRow> = {}): ImportRow => ({
  signup: signup(name, email),
  state: 'listed',
  ...more,
})

const add = ({ operator }: Pick<Place, 'operator'>, rows: readonly ImportRow[], more: Partial<ImportOptions> = {}) => {
  const batches = (async function* () {
    for (let i = 0; i < rows.length; i += 500) yield rows.slice(i, i + 500)
  })()
  return operator.importContacts(batches, { targets: null, dryRun: false, onProgress() {}, ...more })
}

const contactsOf = ({ operator }: Pick<Place, 'operator'>) => Array.fromAsync(operator.contacts({}))
const namesIn = async (here: Pick<Place, 'operator'>) => (await contactsOf(here)).map(({ name }) => name)

async function open(place: MakePlace, t: TestContext) {
  const here = await place(t)
  return { ...here, store: await here.open() }
}

forEachEngine('imports', (place, engine) => {
  test('ids, times to the millisecond, states and sources are kept, in the order of the rows; nobody is notified', async t => {
    const here = await open(place, t)
    const createdAt = new Date('2025-03-04T05:06:07.089Z')
    const id = '01956c1f-0b51-7abc-8def-0123456789ab'
    const source = { utm_source: 'news"letter', ref: 'ünï' }
    const invitation = { code: 'c0deAbcdefgh-jklm_opqr', at: new Date(1), redeemedAt: new Date(2) }
    const rows = [
      row('Zoe', 'Zoe@Example.com', { id, createdAt, source }),
      row("O'Neill \\ {x}", 'mid@example.com', { state: 'pending' }),
      row('Eve', 'eve@example.com', { state: 'held', reason: 'unverified' }),
      row('Ivy', 'ivy@example.com', { state: 'invited', invitation, confirmedAt: createdAt }),
      row('Ada', 'ada@example.com'),
    ]
    assert.deepEqual(await add(here, rows), { added: 5, existing: 0, erased: 0 })
    const contacts = await contactsOf(here)
    assert.deepEqual(
      contacts.map(({ name, email, state, reason }) => [name, email, state, reason]),
      rows.map(({ signup: { name, email }, state, reason }) => [name, email, state, reason]),
    )
    const [zoe, , , ivy, ada] = contacts
    assert.deepEqual([ivy!.invitation, ivy!.confirmedAt], [{ ...invitation, name: undefined }, createdAt])
    assert.deepEqual([zoe!.id, zoe!.createdAt, zoe!.source, zoe!.event], [id, createdAt, source, undefined])
    assert.ok(Math.abs(ada!.createdAt.getTime() - Date.now()) < 60_000)
    assert.match(ada!.id, uuidV7)
    assert.deepEqual(await here.operator.deliveries({ limit: 9 }), [])
    assert.deepEqual(await here.store.admit(signup('Zoe', 'zoe@example.com')), { is: 'already listed' })
  })

  test('the list wins over the file, and the first row of an address over the next; again, nothing changes', async t => {
    const here = await open(place, t)
    await here.store.admit(signup('Ada', 'Ada@example.com'))
    const rows = [row('Not Ada', 'ADA@example.com'), row('Bob', 'Bob@example.com'), row('Not Bob', 'bob@EXAMPLE.com')]
    const once = { added: 1, existing: 2, erased: 0 }
    assert.deepEqual(await add(here, rows, { dryRun: true }), once)
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

  test('a row with the code of somebody else ends it with a sentence; one that is there is not counted as such', async t => {
    const here = await open(place, t)
    const invitation = { code: 'c0deAbcdefgh-jklm_opqr', at: new Date('2026-01-02') }
    const invited = (email: string) => row('Ada', email, { state: 'invited', invitation })
    const refused = /^OperatorError: bob@example\.com has the code of ada@example\.com\. .*another code/
    await assert.rejects(add(here, [invited('ada@example.com'), invited('bob@example.com')]), refused)
    assert.deepEqual(await namesIn(here), [])
    await add(here, [invited('ada@example.com')])
    await assert.rejects(add(here, [row('Cy', 'cy@example.com'), invited('bob@example.com')]), refused)
    assert.deepEqual(await namesIn(here), ['Ada'])
    assert.deepEqual(await add(here, [invited('Ada@example.com')]), { added: 0, existing: 1, erased: 0 })
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

  test('without a database it makes one, but not in a dry run', async t => {
    const here = await place(t)
    const rows = [row('Ada', 'ada@example.com')]
    if (engine === 'postgres') await assert.rejects(add(here, rows, { dryRun: true }), OperatorError)
    else assert.equal(here.operator.isMissing(), true)
    assert.equal((await add(here, rows)).added, 1)
    assert.equal((await add(here, rows)).existing, 1)
    assert.equal(here.operator.isMissing(), false)
  })
})
