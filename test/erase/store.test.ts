import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { ERASURE, reconcileRestored } from '../../src/store/erasures.ts'
import { run } from '../harness/command.ts'
import { forEachEngine, type MakePlace, only, pendingNow, signup } from '../store/place.ts'

const joined = { is: 'listed', joined: true } as const

async function open(place: MakePlace, t: TestContext) {
  const here = await place(t)
  return { ...here, store: await here.open({ provider: 'provider', destinations: ['webhook', 'crm', 'mail'] }) }
}

forEachEngine('erasing people', (place, engine) => {
  test('the contact goes with all deliveries, in any spelling; nobody else does; a keyed hash stays', async t => {
    const { store, operator, sql } = await open(place, t)
    for (const who of ['ada', 'bob']) await store.settle(await pendingNow(store, `${who}@example.com`), joined)
    const erased = await operator.erase('ADA@Example.com')
    assert.equal(erased?.state, 'listed')
    assert.ok(Math.abs(Date.now() - erased!.createdAt.getTime()) < 60_000)
    const rows = await sql<{ email: string }>('select email from contact join delivery on contact = contact.number')
    assert.deepEqual(
      rows.map(({ email }) => email),
      Array(3).fill('bob@example.com'),
    )
    const [secret, ...more] = await sql<{ name: string; value: string }>('select name, value from secret')
    assert.deepEqual([secret!.name, more], [ERASURE, []])
    const kept = await sql<{ hash: string }>('select hash from erased')
    assert.equal(kept.length, 1)
    assert.match(kept[0]!.hash, /^[0-9a-f]{64}$/)
    assert.equal(await operator.traces('ada@example.com'), undefined)
    assert.equal(await operator.erase('ada@example.com'), undefined)
  })

  test('it says who was notified, where attempts were made, and which are in flight', async t => {
    const { store, operator, sql } = await open(place, t)
    await store.settle(await pendingNow(store), joined)
    await store.settle(await only(store, 'webhook'), { is: 'delivered' })
    await store.settle(await only(store, 'crm'), { is: 'abandoned', why: 'HTTP 404' })
    const mail = await only(store, 'mail')
    const { delivered, tried, inFlight } = (await operator.traces('ada@example.com'))!
    assert.deepEqual([delivered, tried, inFlight], [['webhook'], ['crm'], ['mail']])
    await sql('update delivery set due_at = 0 where token is not null')
    const died = await operator.traces('ada@example.com')
    assert.deepEqual([died?.tried, died?.inFlight], [['crm', 'mail'], []], 'who had it died')
    assert.deepEqual(await operator.erase('ada@example.com'), died)
    assert.equal(await store.settle(mail, { is: 'delivered' }), false)
  })

  test('its time is not before that of the signup, and an earlier one does not bring anybody back', async t => {
    const here = await place(t)
    const ahead = Date.now() + 600_000
    const store = await here.open({ clock: () => ahead, provider: 'provider' })
    const erasedAt = async () => (await here.operator.person('ada@example.com')).erasedAt?.getTime()
    await pendingNow(store)
    await here.operator.erase('ada@example.com')
    assert.equal(await erasedAt(), ahead)
    await pendingNow(store)
    await here.sql('update contact set created_at = 0')
    await here.operator.erase('ada@example.com')
    assert.equal(await erasedAt(), ahead)
  })

  test('a list that was put back loses who was erased since, but not who came back', async t => {
    const { store, operator, sql, command } = await open(place, t)
    for (const who of ['ada', 'bob', 'cyd']) await pendingNow(store, `${who}@example.com`)
    await sql('create table earlier as select * from contact')
    for (const who of ['ada', 'bob']) await operator.erase(`${who}@example.com`)
    await sql('insert into contact select * from earlier where number not in (select number from contact)')
    await sql("update contact set created_at = created_at + 600000 where email = 'bob@example.com'")
    const again = () => command(database => database.transaction(reconcileRestored))
    assert.equal(await again(), 1)
    assert.equal(await again(), 0)
    const left = await Array.fromAsync(operator.contacts({}))
    assert.deepEqual(left.map(({ email }) => email).sort(), ['bob@example.com', 'cyd@example.com'])
  })

  if (engine === 'sqlite')
    test('while the service runs, the name and the address leave the file and its log', async t => {
      const here = await place(t)
      const { path } = here.location as { path: string }
      const store = await here.open()
      const text = () => ['', '-wal'].map(ending => readFileSync(path + ending, 'latin1')).join('')
      for (const who of ['first', 'countess', 'last']) await store.admit(signup(`Name of ${who}`, `${who}@example.com`))
      assert.match(text(), /countess/)
      const removed = ['remove', '--yes', 'countess@example.com']
      assert.equal((await run(t, '/nowhere', removed, { DATABASE_URL: `sqlite:${path}` })).code, 0)
      assert.doesNotMatch(text(), /countess/)
      assert.match(text(), /last@example/)
      assert.equal((await store.admit(signup('Visitor', 'next@example.com'))).is, 'listed now')
    })
})
