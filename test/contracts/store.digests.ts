import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Digest, type DigestSettlement, LEASE, NAMED } from '../../src/waitlist/ports/outbox.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { handClock, instances, type MakePlace, opened, pendingNow, signup } from './store.place.ts'

const DISTANCE = 120_000
const MANY = 1_000

const failed = (doubt: boolean, wait = 5_000): DigestSettlement => ({ is: 'waiting', wait, doubt, why: 'HTTP 503' })
const delivered: DigestSettlement = { is: 'delivered' }

async function digest(store: Store, distance = DISTANCE): Promise<Digest> {
  const claimed = await store.claimDigest('chat', MANY, distance)
  assert.ok(claimed !== null && typeof claimed === 'object', `no digest: ${claimed}`)
  return claimed
}

/** The milliseconds that the store wants to pass first. */
async function wait(store: Store, distance = DISTANCE): Promise<number> {
  const claimed = await store.claimDigest('chat', MANY, distance)
  assert.equal(typeof claimed, 'number', `not to wait for: ${JSON.stringify(claimed)}`)
  return claimed as number
}

const joins = (store: Store, ...names: string[]) =>
  Promise.all(names.map(name => store.admit(signup(name, `${name.replaceAll(' ', '.')}@example.com`))))

async function open(t: TestContext, make: MakePlace) {
  const [place, clock] = [await make(t), handClock()]
  const options = { destinations: ['chat', 'webhook'], clock: clock.read }
  return { place, clock, options, store: await opened(place, t, options) }
}

/** What a store promises about digests. */
export function digestContract(name: string, make: MakePlace): void {
  describe(`digests, kept by ${name}`, () => {
    test('nothing is due while nobody joined; then all are in one digest, the first names with it', async t => {
      const { store, clock } = await open(t, make)
      assert.equal(await store.claimDigest('chat', MANY, DISTANCE), null)
      const names = Array.from({ length: NAMED + 3 }, (_, i) => `Visitor ${i}`)
      for (const each of names) {
        await joins(store, each)
        clock.pass(1)
      }
      const { channel, deliveries, attempts, doubtful, names: told } = await digest(store)
      assert.deepEqual([channel, attempts, doubtful], ['chat', 0, 0])
      assert.equal(new Set(deliveries).size, names.length)
      assert.deepEqual(told, names.slice(0, NAMED))
      assert.equal((await store.claim('webhook', MANY)).length, names.length, 'other destinations hear of each')
    })

    test('the next one keeps its distance from one that was delivered, and has those who came since', async t => {
      const { store, clock } = await open(t, make)
      await joins(store, 'Ada', 'Grace')
      const first = await digest(store)
      await joins(store, 'Eve')
      clock.pass(2_000)
      assert.equal(await store.settleDigest(first, delivered, DISTANCE), true)
      assert.equal(await wait(store), DISTANCE)
      clock.pass(DISTANCE - 1)
      assert.equal(await wait(store), 1)
      clock.pass(1)
      const second = await digest(store)
      assert.deepEqual(second.names, ['Eve'])
      assert.equal(await store.settleDigest(second, delivered, DISTANCE), true)
      clock.pass(DISTANCE)
      assert.equal(await store.claimDigest('chat', MANY, DISTANCE), null)
    })

    test('while one is under way there is no other, however short the distance is', async t => {
      const { store, clock } = await open(t, make)
      await joins(store, 'Ada')
      const first = await digest(store, 1_000)
      await joins(store, 'Eve')
      clock.pass(LEASE - 1)
      assert.equal(await wait(store, 1_000), 1)
      assert.equal(await store.settleDigest(first, delivered, 1_000), true)
      clock.pass(1_000)
      assert.deepEqual((await digest(store, 1_000)).names, ['Eve'])
    })

    test('after an attempt without effect there is no distance, and those of it come again when they are due', async t => {
      const { store, clock } = await open(t, make)
      await joins(store, 'Ada')
      assert.equal(await store.settleDigest(await digest(store), failed(false), DISTANCE), true)
      assert.equal(await store.claimDigest('chat', MANY, DISTANCE), null)
      await joins(store, 'Eve')
      const second = await digest(store)
      assert.deepEqual(second.names, ['Eve'])
      assert.equal(await store.settleDigest(second, { ...failed(false), uncounted: true } as DigestSettlement, 0), true)
      clock.pass(5_000)
      const third = await digest(store)
      assert.deepEqual([third.names, third.attempts, third.doubtful], [['Ada', 'Eve'], 0, 0])
    })

    test('after an attempt in doubt the distance is kept, and doubt stays with whom it is about', async t => {
      const { store, clock } = await open(t, make)
      await joins(store, 'Ada', 'Grace')
      await store.settleDigest(await digest(store), failed(true), DISTANCE)
      clock.pass(5_000)
      await joins(store, 'Eve')
      assert.equal(await wait(store), DISTANCE - 5_000)
      clock.pass(DISTANCE)
      const second = await digest(store)
      assert.deepEqual([second.deliveries.length, second.doubtful, second.attempts], [3, 2, 0])
      await store.settleDigest(second, failed(false), DISTANCE)
      clock.pass(5_000)
      assert.equal((await digest(store)).doubtful, 2)
    })

    test('what a process held that died comes again, in doubt, when the distance is over, and its token is void', async t => {
      const { store, clock } = await open(t, make)
      await joins(store, 'Ada')
      const died = await digest(store)
      clock.pass(LEASE + 1)
      await joins(store, 'Eve')
      assert.equal(await wait(store), DISTANCE - LEASE - 1)
      clock.pass(DISTANCE)
      const again = await digest(store)
      assert.deepEqual([again.names, again.doubtful], [['Ada', 'Eve'], 1])
      for (const end of [delivered, failed(false)]) assert.equal(await store.settleDigest(died, end, DISTANCE), false)
      assert.ok((await wait(store)) > 0, 'nor does it end the distance')
      assert.equal(await store.settleDigest(again, delivered, DISTANCE), true)
      assert.equal(await store.settleDigest(again, delivered, DISTANCE), false, 'the token is used up')
    })

    test('one that was abandoned is kept with the reason, and keeps its distance', async t => {
      const { place, store } = await open(t, make)
      await joins(store, 'Ada', 'Grace')
      const why = 'HTTP 400'
      assert.equal(await store.settleDigest(await digest(store), { is: 'abandoned', why }, DISTANCE), true)
      assert.equal(await wait(store), DISTANCE)
      const rows = await place.sql?.("select state, why, attempts from delivery where destination = 'chat'")
      if (rows !== undefined)
        assert.deepEqual(
          rows.map(row => ({ ...row })),
          Array(2).fill({ state: 'abandoned', why, attempts: 1 }),
        )
    })

    test('of a crowd of instances that claim at once, again and again, one gets the digest; each is told of once', async t => {
      const [place, clock] = [await make(t), handClock()]
      const options = { destinations: ['chat'], clock: clock.read }
      const stores = await instances(place, t, 4, options)
      const told: number[] = []
      for (let round = 0; round < 10; round++) {
        const some = Array.from({ length: 20 }, (_, i) => joins(stores[0], `Visitor ${round} ${i}`))
        // Fewer than are due, so that there is something left for each.
        const claims = Array.from({ length: 16 }, (_, i) => stores[i % stores.length]!.claimDigest('chat', 5, DISTANCE))
        await Promise.all(some)
        const more = stores.map(store => store.claimDigest('chat', 5, DISTANCE))
        const found = (await Promise.all([...claims, ...more])).filter(
          each => each !== null && typeof each === 'object',
        )
        assert.equal(found.length, 1)
        told.push(...found[0]!.deliveries)
        const store = stores[round % stores.length]!
        assert.equal(await store.settleDigest(found[0]!, delivered, DISTANCE), true)
        clock.pass(DISTANCE)
      }
      assert.equal(new Set(told).size, told.length)
    })

    test('though their clocks differ by a second, one of a crowd of instances gets the digest', async t => {
      const place = await make(t)
      let behind = () => 2_000
      const options = { destinations: ['chat'], clock: () => Date.now() - behind() }
      const stores = await instances(place, t, 4, options)
      await joins(stores[0], ...Array.from({ length: 200 }, (_, i) => `Visitor ${i}`))
      behind = () => Math.round(1_000 * Math.random())
      const all = stores.flatMap(store => Array.from({ length: 8 }, () => store))
      const found = await Promise.all(all.map(store => store.claimDigest('chat', 5, DISTANCE)))
      assert.equal(found.filter(each => each !== null && typeof each === 'object').length, 1)
    })

    test('opened again it knows when the last digest was, and whom it told of', async t => {
      const { place, clock, options, store } = await open(t, make)
      if (place.forgets !== undefined) return t.skip(place.forgets)
      await joins(store, 'Ada', 'Grace')
      await store.settleDigest(await digest(store), delivered, DISTANCE)
      await joins(store, 'Eve')
      await store.close()
      const after = await opened(place, t, options)
      assert.equal(await wait(after), DISTANCE)
      clock.pass(DISTANCE)
      assert.deepEqual((await digest(after)).names, ['Eve'])
    })

    test('who is pending is in no digest, nor counted as listed, until the provider has confirmed it', async t => {
      const [place, clock] = [await make(t), handClock()]
      const store = await opened(place, t, { provider: 'provider', destinations: ['chat'], clock: clock.read })
      const [ada, known] = [await pendingNow(store), await pendingNow(store, 'known@example.com')]
      await pendingNow(store, 'waits@example.com')
      assert.equal(await store.claimDigest('chat', MANY, DISTANCE), null)
      assert.equal(await store.countListed(), 0)
      await store.settle(ada, { is: 'listed', joined: true })
      await store.settle(known, { is: 'listed', joined: false })
      assert.equal((await digest(store)).deliveries.length, 1)
      assert.equal(await store.countListed(), 2)
    })

    test('a turn is taken once in its time, by one of all who ask, and each name has its own', async t => {
      const [place, clock] = [await make(t), handClock()]
      const stores = await instances(place, t, 4, { clock: clock.read })
      const taken = async (name: string) => {
        const all = Array.from({ length: 16 }, (_, i) => stores[i % stores.length]!.acquireInterval(name, 60_000))
        return (await Promise.all(all)).filter(Boolean).length
      }
      assert.deepEqual([await taken('one'), await taken('other'), await taken('one')], [1, 1, 0])
      clock.pass(59_999)
      assert.equal(await taken('one'), 0)
      clock.pass(1)
      assert.deepEqual([await taken('one'), await taken('one')], [1, 0])
    })
  })
}
