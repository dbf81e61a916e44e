import assert from 'node:assert/strict'
import { join as joinPath } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Creation, Provider } from '../../src/delivery/destination.ts'
import { type HandedOver, handover } from '../../src/delivery/handover.ts'
import type { Contact } from '../../src/signup/contact.ts'
import { join } from '../../src/signup/join.ts'
import { LEASE } from '../../src/store/outbox.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { quickFolder } from '../harness/folder.ts'
import { keptLog } from '../harness/log.ts'
import { until } from '../harness/program.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const EMAIL = 'ada@example.com'
const why = 'as the test wants it'

type Answer = (contact: Contact, inDoubt: boolean, signal: AbortSignal) => Creation | Promise<Creation>

/** Visitors, and a provider that answers as the test wants it. */
async function stage(t: TestContext) {
  const path = joinPath(quickFolder(t), 'waitlist.db')
  const clock = { ahead: 0 }
  const store = await storeAt(path, {
    provider: 'fake',
    destinations: ['webhook'],
    clock: () => Date.now() + clock.ahead,
  })
  t.after(() => store.close())
  const { log, lines } = keptLog()
  const asked: boolean[] = []
  const state = { answer: (() => ({ is: 'created' })) as Answer, announced: 0 }
  const provider: Provider = {
    ...{ name: 'fake', timeout: 20_000, automation: null },
    async create(contact, inDoubt, signal) {
      asked.push(inDoubt)
      return state.answer(contact, inDoubt, signal)
    },
    remove: async () => ({ is: 'absent' }),
    check: async () => null,
  }
  const worker = handover(provider, 'the fake', { store, log, announce: () => state.announced++ })
  return Object.assign(state, {
    ...{ clock, lines, asked, worker },
    visit: (email = EMAIL, signal = new AbortController().signal, timeout = 20_000) =>
      join(signup('Ada Lovelace', email), {
        ...{ store, signal, timeout, announce: () => {} },
        handOver: worker,
        inBackground: null,
      }),
    contacts: () => contactsIn(path),
    rows: () =>
      withDatabase(path, database =>
        database
          .prepare("select doubt, attempts, token is not null as leased, why from delivery where kind = 'handover'")
          .all()
          .map(row => ({ ...row })),
      ),
  })
}

/** Without the members that are undefined. */
const bare = (result: object) => Object.fromEntries(Object.entries(result).filter(([, value]) => value !== undefined))

const kept = { is: 'kept', because: 'unreachable' } as const
const known = { is: 'known' } as const
type Becomes = 'listed with its event' | 'listed' | 'removed' | 'pending' | 'pending, in doubt'

/** The table of handover.ts; whether there was doubt before, if that matters. */
const table: readonly (readonly [Creation, before: readonly boolean[], Becomes, HandedOver])[] = [
  [{ is: 'created', providerId: 'p1' }, [false, true], 'listed with its event', { is: 'new', contactId: 'p1' }],
  [{ is: 'created' }, [false, true], 'listed with its event', { is: 'new' }],
  [{ is: 'existing', providerId: 'p1' }, [false, true], 'listed', known],
  [{ is: 'refused', reason: 'it is blocked' }, [false, true], 'removed', { is: 'refused', reason: 'it is blocked' }],
  [{ is: 'unreachable', why }, [false, true], 'pending', kept],
  [{ is: 'rate limited', why, retryAfter: 1_000 }, [false, true], 'pending', kept],
  [{ is: 'misconfigured', why }, [false, true], 'pending', { is: 'kept', because: 'misconfigured' }],
  [{ is: 'in doubt', why }, [false, true], 'pending, in doubt', kept],
]

for (const [creation, either, becomes, told] of table) {
  for (const before of either) {
    test(`${creation.is}${before ? ', in doubt before' : ''}: it is ${becomes}; the visitor is told ${told.is}`, async t => {
      const here = await stage(t)
      if (before) {
        here.answer = () => ({ is: 'in doubt', why })
        assert.deepEqual(await here.visit(), kept)
      }
      here.answer = () => creation
      assert.deepEqual(bare(await here.visit()), told)
      assert.deepEqual(here.asked, before ? [false, true] : [false])
      const events = becomes === 'listed with its event' ? 1 : 0
      const [state] = becomes.split(/[ ,]/)
      assert.deepEqual(
        here.contacts().map(each => [each.state, each.events, each.providerId]),
        state === 'removed' ? [] : [[state, events, 'providerId' in creation ? 'p1' : null]],
      )
      assert.equal(here.announced, events)
      assert.deepEqual(
        here.rows().map(({ doubt }) => doubt),
        state === 'pending' ? [before || becomes === 'pending, in doubt' ? 1 : 0] : [],
      )
    })
  }
}

test('two visitors at once with one address: one call, one event; the second is told what is true then', async t => {
  const here = await stage(t)
  const called = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  here.answer = async () => {
    called.resolve()
    await end.promise
    return { is: 'created', providerId: 'p1' }
  }
  const first = here.visit()
  await called.promise
  const second = here.visit(EMAIL.toUpperCase())
  assert.deepEqual(await here.visit(EMAIL, undefined, 150), kept, 'who does not wait any longer')
  end.resolve()
  assert.deepEqual([await first, await second], [{ is: 'new', contactId: 'p1' }, known])
  assert.deepEqual([here.asked.length, here.contacts()[0]!.events, here.announced], [1, 1, 1])
})

test('the first fails: the second attempts it, with the doubt that the first has left', async t => {
  const here = await stage(t)
  const called = Promise.withResolvers<void>()
  here.answer = async (_, inDoubt) => {
    called.resolve()
    await new Promise(resolve => setTimeout(resolve, 50))
    return inDoubt ? { is: 'created' } : { is: 'in doubt', why }
  }
  const first = here.visit()
  await called.promise
  assert.deepEqual([await here.visit(), await first].map(bare), [{ is: 'new' }, kept])
  assert.deepEqual(here.asked, [false, true])
})

test('an outage: visitors are answered without a call, and all are completed after it', async t => {
  const here = await stage(t)
  here.answer = () => ({ is: 'unreachable', why })
  for (let i = 0; i < 12; i++) assert.deepEqual(await here.visit(`visitor-${i}@example.com`), kept)
  assert.deepEqual([here.asked.length, here.worker.breaker.outage()], [5, 'unreachable'])
  assert.deepEqual(here.rows().at(-1), {
    doubt: 0,
    attempts: 0,
    leased: 0,
    why: 'not sent: the provider does not answer',
  })
  here.answer = () => ({ is: 'created' })
  here.worker.start()
  // Whose turn comes later by their own schedule or that of the outage is due now.
  here.clock.ahead = 60_000
  await until(() => here.contacts().every(({ state }) => state === 'listed'))
  await here.worker.stop(0)
  assert.deepEqual(
    here.lines.map(({ message }) => message).filter(message => !message.includes('fail')),
    ['the fake does not answer: deliveries are kept', 'the fake answers again: due deliveries continue'],
  )
})

test('a stop: who comes is kept without a call, and who waits for a call is answered', async t => {
  const here = await stage(t)
  assert.deepEqual(await here.visit(EMAIL, AbortSignal.abort()), kept)
  assert.deepEqual([here.asked, here.rows()[0]!.leased], [[], 0])
  here.answer = (_, __, signal) =>
    new Promise(resolve => signal.addEventListener('abort', () => resolve({ is: 'in doubt', why })))
  const stop = new AbortController()
  const visit = here.visit('eve@example.com', stop.signal)
  await until(() => here.asked.length === 1)
  stop.abort()
  assert.deepEqual(await visit, kept)
})

test('an attempt that outlives its lease changes nothing, and says nothing untrue', async t => {
  const here = await stage(t)
  here.answer = async () => {
    here.clock.ahead += LEASE
    here.answer = () => ({ is: 'created', providerId: 'second' })
    await here.worker.once()
    return { is: 'refused', reason: 'too late' }
  }
  assert.deepEqual(await here.visit(), { is: 'lost' })
  assert.deepEqual(
    here.contacts().map(each => [each.state, each.events, each.providerId]),
    [['listed', 1, 'second']],
  )
})

test('a saved signup whose address is refused is dropped, with a line in the log', async t => {
  const here = await stage(t)
  here.answer = () => ({ is: 'unreachable', why })
  await here.visit()
  here.answer = () => ({ is: 'refused', reason: 'it is blocked' })
  here.clock.ahead = 60_000
  await here.worker.once()
  assert.deepEqual(here.contacts(), [])
  assert.deepEqual(here.lines.at(-1)!.message, 'the fake refuses the address of a saved signup: the signup is dropped')
})
