import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Failure } from '../../src/http-client/call.ts'
import { type Channel, channelWorker, claimDigest, type Digest, LAG, settleDigest } from '../../src/notify/channel.ts'
import { chat, discord, slack } from '../../src/notify/chat.ts'
import { activate } from '../../src/store/activate.ts'
import { LEASE, tryAcquireLock } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import { keptLog } from '../harness/log.ts'
import { type Received, startReceiver } from '../harness/receiver.ts'
import { forEachEngine, handClock, type MakePlace, signup } from '../store/place.ts'

const running = new AbortController().signal

describe('a chat', () => {
  const chats = [
    {
      ...{ which: slack, path: '/services/T00000000/B00000000/XXXXXXXXXXXXXXXX', escaped: '&lt;@U1&gt; *b*' },
      ...{ and: '&amp;', text: ({ json }: Received) => json.text },
    },
    {
      ...{ which: discord, path: '/api/webhooks/223704706495545344/aVeryLongToken', escaped: '<@U1> *b*' },
      ...{ and: '&', text: ({ json }: Received) => json.content },
    },
  ]
  for (const { which, path, escaped, and, text } of chats) {
    test(`${which.name}: a sentence is plain text without links and mentions; no failure is the sentence's`, async t => {
      let status = 200
      const receiver = await startReceiver(t, () => ({ status, body: `no ${path}` }))
      const channel = chat(which, receiver.url + path, 'Acme.io')
      assert.equal(await channel.send('37 people <@U1> *b* https://evil.example\n@everyone & more', running), null)
      const [one] = receiver.received as [Received]
      const shown = text(one).replaceAll('\u200B', '').replaceAll('\\', '')
      assert.equal(shown, `Acme.io: 37 people ${escaped} https://evil.example @everyone ${and} more`)
      assert.doesNotMatch(text(one), /:\/\/|evil\.example|@everyone|@U1|Acme\.io/)
      if (which === discord) assert.deepEqual([one.query.wait, one.json.allowed_mentions], ['true', { parse: [] }])
      for (const [code, is] of [
        [400, 'misconfigured'],
        [404, 'misconfigured'],
        [429, 'rate limited'],
        [500, 'in doubt'],
      ] as const) {
        status = code
        const failure = await channel.send('Hi', running)
        assert.equal(failure?.is, is)
        assert.doesNotMatch(failure.why, /XXXXXXXX|22370470|aVeryLongToken/)
      }
    })
  }
})

const claim = (store: Store) => store.transaction(tx => claimDigest(tx, 'chat'))
const tell = (store: Store, digest: Digest) =>
  store.transaction(tx => settleDigest(tx, digest, { isTold: true, wait: 60_000, doubt: false }))

async function claimed(store: Store): Promise<Digest> {
  const digest = await claim(store)
  assert.ok(digest !== null, 'no digest')
  return digest
}

const join = async (store: Store, ...names: string[]) => {
  for (const name of names) await store.admit(signup(name, `${name.replaceAll(' ', '.')}@example.com`))
}

/** A channel that several instances tell, and that fails as long as the test wants it. */
async function stage(t: TestContext, place: MakePlace) {
  const [here, clock] = [await place(t), handClock()]
  const stores = await here.instances(3, { clock: clock.read })
  const [store] = stores
  const { log, lines } = keptLog()
  const sent: string[] = []
  const state = { failure: null as Failure | null }
  const channel: Channel = {
    ...{ name: 'chat', label: 'the chat', minInterval: 60_000 },
    async send(sentence) {
      sent.push(sentence)
      return state.failure
    },
  }
  /** Another process, which polls once. */
  const poll = async () => {
    const worker = channelWorker(channel, { store, log })
    await worker.open()
    await worker.once()
  }
  await poll()
  clock.pass(LAG)
  return {
    ...{ here, clock, stores, store, sent, lines, state, poll },
    joins: async (...names: string[]) => {
      await join(store, ...names)
      clock.pass(LAG)
    },
  }
}

forEachEngine('a channel', place => {
  test('all who joined and were invited since the last message share one, a minute apart', async t => {
    const { poll, joins, clock, sent, here } = await stage(t, place)
    await poll()
    assert.deepEqual(sent, [])
    await joins('Ada', 'Grace')
    await poll()
    await joins('Eve')
    await here.operator.invite({}, 1, { eventName: 'waitlist.invited', destinations: [] })
    await here.sql('update contact set invited_at = $1 where invited_at is not null', [clock.read() - LAG])
    await poll()
    assert.equal(sent.length, 1)
    clock.pass(60_000)
    await poll()
    await poll()
    assert.deepEqual(sent, [
      '2 people joined the waitlist, 2 in all',
      '1 person joined the waitlist, 3 in all; 1 person was invited',
    ])
  })

  test('what fails is sent again with those who joined since, and says so when it may have arrived', async t => {
    const { joins, sent, state, poll } = await stage(t, place)
    await joins('Ada')
    for (const failure of [{ is: 'unreachable', why: 'down' }, { is: 'in doubt', why: 'no answer' }, null] as const) {
      state.failure = failure
      await poll()
      await joins(`Grace-${sent.length}`)
    }
    assert.deepEqual(sent, [
      '1 person joined the waitlist, 1 in all',
      '2 people joined the waitlist, 2 in all',
      '3 people joined the waitlist, 3 in all (some of them may have been announced before)',
    ])
  })

  test('what a process held that died comes again with those who came since, in doubt, and its token is void', async t => {
    const { store, clock, joins } = await stage(t, place)
    await joins('Ada')
    const died = await claimed(store)
    await join(store, 'Eve')
    clock.pass(LEASE - 1)
    assert.equal(await claim(store), null)
    clock.pass(1)
    const again = await claimed(store)
    assert.deepEqual([again.joined, again.doubt], [2, true])
    await tell(store, died)
    clock.pass(LEASE)
    const last = await claimed(store)
    assert.equal(last.joined, 2)
    await tell(store, last)
    clock.pass(LEASE)
    assert.equal(await claim(store), null)
  })

  test('each who joined is counted once: by a crowd of instances, some of which die between claim and settlement', async t => {
    const { stores, store, clock } = await stage(t, place)
    let [joined, counted, repeated] = [0, 0, 0]
    for (let round = 0; round < 12; round++) {
      const signups = Array.from({ length: 5 }, (_, i) => join(stores[i % stores.length]!, `V ${round} ${i}`))
      const claims = stores.flatMap(each => [claim(each), claim(each)])
      await Promise.all(signups)
      joined += 5
      const found = (await Promise.all(claims)).filter(each => each !== null)
      assert.ok(found.length <= 1)
      for (const each of found) {
        // It was posted, and this was not stored.
        if (round % 3 === 1) repeated += each.joined
        else {
          if (repeated > 0) assert.equal(each.doubt, true)
          await tell(stores[round % stores.length]!, each)
          counted += each.joined
          repeated = 0
        }
      }
      clock.pass(60_000)
    }
    const last = await claimed(store)
    assert.equal(counted + last.joined, joined)
  })

  test('who is stored by a transaction that commits late is in the next one', async t => {
    const { stores, clock } = await stage(t, place)
    const [store, other = store] = stores
    const targets = { eventName: 'waitlist.joined', provider: null, destinations: [], confirmation: null }
    const late = { id: 'held', name: 'Late', email: 'l@x', email_key: 'l@x', state: 'held', reason: 'unverified' }
    await store.transaction(tx => tx.insert('contact', [{ ...late, created_at: 0 }]))
    await join(store, 'Ada')
    const end = Promise.withResolvers<void>()
    const began = Promise.withResolvers<void>()
    const released = store.transaction(async tx => {
      const [row] = await tx.all<{ number: number }>("select number from contact where id = 'held'")
      await activate(tx, 'held', [row!.number], targets)
      began.resolve()
      // With one connection nobody could look meanwhile.
      if (other !== store) await end.promise
    })
    await began.promise
    clock.pass(LAG - 1)
    assert.equal(await claim(other), null)
    end.resolve()
    await released
    clock.pass(1)
    assert.equal((await claimed(other)).joined, 2)
  })

  test('a lock is taken once in its time, by one of all who ask, and each name has its own', async t => {
    const { stores, clock } = await stage(t, place)
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
