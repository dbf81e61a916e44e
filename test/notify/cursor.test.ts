import assert from 'node:assert/strict'
import { test } from 'node:test'
import { claimDigest, type Digest, LAG, openChannel, settleDigest } from '../../src/notify/cursor.ts'
import { activate } from '../../src/store/activate.ts'
import { LEASE, tryAcquireLock } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import { bulk, forEachEngine, handClock, type MakePlace, signup } from '../store/place.ts'

const INTERVAL = 120_000

const join = async (store: Store, ...names: string[]) => {
  for (const name of names) await store.admit(signup(name, `${name.replaceAll(' ', '.')}@example.com`))
}
const claim = (store: Store) => store.transaction(tx => claimDigest(tx, 'chat'))
const settle = (store: Store, digest: Digest, end: Parameters<typeof settleDigest>[2]) =>
  store.transaction(tx => settleDigest(tx, digest, end))
const sent = ({ until }: Digest) => ({ until, wait: INTERVAL, doubt: false })
const failed = (doubt: boolean) => ({ until: null, wait: 5_000, doubt })

async function digest(store: Store): Promise<Digest> {
  const claimed = await claim(store)
  assert.ok(claimed !== null && typeof claimed === 'object', `no digest: ${claimed}`)
  return claimed
}

async function open(place: MakePlace, t: Parameters<MakePlace>[0]) {
  const [here, clock] = [await place(t), handClock()]
  const stores = await here.instances(3, { clock: clock.read })
  await stores[0].transaction(tx => openChannel(tx, 'chat'))
  clock.pass(LAG)
  return { here, clock, stores, store: stores[0] }
}

forEachEngine('a channel', place => {
  test('nothing is due while nobody joined; then all are in one digest', async t => {
    const { here, store, clock } = await open(place, t)
    assert.equal(await claim(store), null)
    await join(store, 'Ada', 'Grace', 'Eve')
    clock.pass(LAG)
    await here.operator.invite({}, 2, { eventName: 'waitlist.invited', destinations: [] }, bulk)
    await here.sql('update contact set invited_at = created_at where invited_at is not null')
    const { channel, joined, invited, doubt } = await digest(store)
    assert.deepEqual([channel, joined, invited, doubt], ['chat', 3, 2, false])
  })

  test('the next one waits for its time, and has those who came since; opened again it goes on', async t => {
    const { here, store, clock } = await open(place, t)
    await join(store, 'Ada', 'Grace')
    clock.pass(LAG)
    const first = await digest(store)
    await join(store, 'Eve')
    assert.equal(await settle(store, first, sent(first)), true)
    await store.close()
    const after = await here.open({ clock: clock.read })
    await after.transaction(tx => openChannel(tx, 'chat'))
    assert.equal(await claim(after), INTERVAL)
    clock.pass(INTERVAL)
    const second = await digest(after)
    assert.equal(second.joined, 1)
    await settle(after, second, sent(second))
    clock.pass(INTERVAL)
    assert.equal(await claim(after), null)
  })

  test('what a process held that died comes again with those who came since, in doubt, and its token is void', async t => {
    const { store, clock } = await open(place, t)
    await join(store, 'Ada')
    clock.pass(LAG)
    const died = await digest(store)
    await join(store, 'Eve')
    clock.pass(LEASE - 1)
    assert.equal(await claim(store), 1)
    clock.pass(1)
    const again = await digest(store)
    assert.deepEqual([again.joined, again.doubt], [2, true])
    for (const end of [sent(died), failed(false)]) assert.equal(await settle(store, died, end), false)
    assert.equal(await settle(store, again, sent(again)), true)
    assert.equal(await settle(store, again, sent(again)), false, 'the token is used up')
  })

  test('after an attempt without effect its people come again when it is due; a doubt stays as long as it is said', async t => {
    const { store, clock } = await open(place, t)
    await join(store, 'Ada')
    clock.pass(LAG)
    for (const doubt of [false, true]) {
      assert.equal(await settle(store, await digest(store), failed(doubt)), true)
      assert.equal(await claim(store), 5_000)
      clock.pass(5_000)
      const again = await digest(store)
      assert.deepEqual([again.joined, again.doubt], [1, doubt])
      await settle(store, again, failed(false))
      clock.pass(5_000)
    }
    assert.equal((await digest(store)).doubt, false)
  })

  test('each who joined is counted once: by a crowd of instances, some of which die between claim and settlement', async t => {
    const { stores, store, clock } = await open(place, t)
    let [joined, counted, repeated] = [0, 0, 0]
    for (let round = 0; round < 12; round++) {
      const signups = Array.from({ length: 5 }, (_, i) => join(stores[i % stores.length]!, `V ${round} ${i}`))
      const claims = stores.flatMap(each => [claim(each), claim(each)])
      await Promise.all(signups)
      joined += 5
      const found = (await Promise.all(claims)).filter(each => each !== null && typeof each === 'object')
      assert.ok(found.length <= 1)
      for (const each of found) {
        // It was posted, and this was not stored.
        if (round % 3 === 1) repeated += each.joined
        else {
          if (repeated > 0) assert.equal(each.doubt, true)
          assert.ok(await settle(stores[round % stores.length]!, each, sent(each)))
          counted += each.joined
          repeated = 0
        }
      }
      clock.pass(INTERVAL)
    }
    const last = await digest(store)
    assert.equal(counted + last.joined, joined)
  })

  test('who is stored by a transaction that commits late is in the next one', async t => {
    const { stores, clock } = await open(place, t)
    const [store, other = store] = stores
    const targets = { eventName: 'waitlist.joined', provider: null, destinations: [], confirmation: null }
    await store.transaction(tx =>
      tx.insert('contact', [
        {
          id: 'held',
          name: 'Late',
          email: 'l@x',
          email_key: 'l@x',
          state: 'held',
          reason: 'unverified',
          created_at: 0,
        },
      ]),
    )
    await join(store, 'Ada')
    const late = Promise.withResolvers<void>()
    const began = Promise.withResolvers<void>()
    const released = store.transaction(async tx => {
      const [row] = await tx.all<{ number: number }>("select number from contact where id = 'held'")
      await activate(tx, 'held', [row!.number], targets)
      began.resolve()
      // With one connection nobody could look meanwhile.
      if (other !== store) await late.promise
    })
    await began.promise
    clock.pass(LAG - 1)
    assert.equal(await claim(other), null)
    late.resolve()
    await released
    clock.pass(1)
    assert.equal((await digest(other)).joined, 2)
  })

  test('a lock is taken once in its time, by one of all who ask, and each name has its own', async t => {
    const { stores, clock } = await open(place, t)
    const taken = async (name: string) => {
      const all = Array.from({ length: 16 }, (_, i) =>
        stores[i % stores.length]!.transaction(tx => tryAcquireLock(tx, name, 60_000)),
      )
      return (await Promise.all(all)).filter(Boolean).length
    }
    assert.deepEqual([await taken('one'), await taken('other'), await taken('one')], [1, 1, 0])
    clock.pass(59_999)
    assert.equal(await taken('one'), 0)
    clock.pass(1)
    assert.deepEqual([await taken('one'), await taken('one')], [1, 0])
  })
})
