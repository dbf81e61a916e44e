import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { LONGEST_QUEUE } from '../../src/outbound/caller.ts'
import { type Contact, eventId, type WaitlistEvent } from '../../src/signup/contact.ts'
import { LEASE } from '../../src/store/outbox.ts'
import type { DeliveryResult, Destination } from '../../src/waitlist/ports/destination.ts'
import { cut, type Deed, never, type Received, reset, type Said, say, startReceiver } from '../harness/receiver.ts'

export interface DestinationUnderTest {
  readonly name: string
  /** Opens the destination whose receiver is at `url` (no slash at the end). Closed when the test ends. */
  open(url: string, test: Pick<TestContext, 'after'>): Destination | Promise<Destination>
  /** Makes a receiver in good health, which may keep state; one for each test. */
  receiver(): (received: Received) => Said
  /** Null: this request tells of no event, such as a look-up before it. `id`: what the receiver knows the event by. */
  telling(received: Received): { readonly id?: string } | null
  /**
   * `gone`: whether a 410 means that nothing more should be sent. `statusAlone`: whether a 2xx needs no body. `refuse`:
   * whether it may refuse what it is told for good; if not, it is never that which is at fault.
   */
  readonly can: { readonly gone: boolean; readonly statusAlone: boolean; readonly refuse?: boolean }
  /** What must never be in the log. */
  readonly secrets: readonly string[]
}

/** Whether a text has an address. */
const isPrivate = (text: string): boolean => text.includes('@')

const textsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(textsIn)

/** Says no and repeats all that it was told, as chatty servers do: after `padding` characters what is most private. */
const refuse =
  (status: number, headers: Record<string, string> = {}, padding = 0): Deed =>
  (response, received) => {
    const texts = textsIn(received.json)
    const heard = [...texts.filter(isPrivate), ...Object.values(received.headers), ...texts].join(' ')
    const body = { message: '-'.repeat(padding) + heard, errors: [{ detail: received.text }] }
    say({ status, headers, body })(response, received)
  }

export const CODE = 'c0deAbcdefgh-jklm_opqr'

/** The invitation of somebody who joined. */
export function invited(number = 0, more: Partial<Contact> = {}): WaitlistEvent {
  const { at, contact } = joined(number, more)
  const event = { kind: 'invited', name: 'waitlist.invited', at, code: CODE } as const
  const invitation = { code: CODE, at, name: event.name }
  return { ...event, id: eventId(contact, 'invited'), contact: { ...contact, state: 'invited', invitation } }
}

/** The event of a contact; `number` tells one from the other. */
export function joined(number = 0, more: Partial<Contact> = {}): WaitlistEvent {
  const id = `01981d4f-3c00-7c4e-9d0a-${number.toString(16).padStart(12, '0')}`
  const at = new Date('2025-07-18T09:30:00.123Z')
  const email = `Ada.Lovelace.${number}@Example.com`
  const contact: Contact = { id, name: 'Ada King Lovelace', email, state: 'listed', createdAt: at, ...more }
  return { kind: 'joined', id: eventId(contact, 'joined'), name: 'waitlist.joined', at, contact }
}

/** What is true of every destination's numbers. */
export function assertSensible({ name, repeatable, timeout, concurrency }: Destination): void {
  assert.match(name, /^[a-z-]+$/)
  assert.ok(repeatable >= 0)
  assert.ok(timeout > 0 && LONGEST_QUEUE + timeout < LEASE / 2)
  assert.ok(Number.isInteger(concurrency) && concurrency > 0)
}

/** The reason, if there is one, is one line without addresses and secrets. */
export function assertDiscreet(told: object, secrets: readonly string[]): void {
  if (!('why' in told)) return
  const why = String(told.why)
  assert.notEqual(why, '')
  assert.ok(!/[@\n]/.test(why), why)
  for (const secret of secrets) assert.ok(!why.includes(secret), why)
}

type Outcome = { readonly is: DeliveryResult['is']; readonly retryAfter?: number | 'some' }
const unclear: Outcome = { is: 'unclear' }
const misconfigured: Outcome = { is: 'misconfigured' }
const refused: Outcome = { is: 'refused' }
const delivered: Outcome = { is: 'delivered' }
const asked: Outcome = { is: 'unreached', retryAfter: 7_000 }

/**
 * What a receiver does to the request that tells of the event, and what that must be taken for. How a call can fail is the
 * caller's: test/outbound/caller.test.ts.
 */
const answers: Readonly<Record<string, readonly [Deed, Outcome]>> = {
  '500': [refuse(500), unclear],
  '503 with Retry-After': [refuse(503, { 'retry-after': '7' }), asked],
  '429': [refuse(429), { is: 'unreached', retryAfter: 'some' }],
  '301': [refuse(301, { location: '/elsewhere' }), misconfigured],
  '401': [refuse(401), misconfigured],
  '401 with a long answer': [refuse(401, {}, 190), misconfigured],
  '404': [refuse(404), misconfigured],
  '400': [refuse(400), refused],
  '422': [refuse(422), refused],
}

/** The promises of `Destination` (waitlist/ports/destination.ts). */
export function destinationContract({ name, open, receiver, telling, can, secrets }: DestinationUnderTest): void {
  /** `deed` is done to what tells of an event; all else is answered well. */
  async function started(t: TestContext, deed: (count: number) => Deed | null) {
    const well = receiver()
    const told: { readonly id?: string }[] = []
    const server = await startReceiver(t, one => {
      const about = telling(one)
      if (about === null) return well(one)
      told.push(about)
      return deed(told.length) ?? well(one)
    })
    return { server, told, destination: await open(server.url, t) }
  }

  /** Waits until `count` events were told of. */
  async function heard({ server, told }: Awaited<ReturnType<typeof started>>, count: number): Promise<void> {
    while (told.length < count) await server.arrived(server.received.length + 1)
  }

  const running = new AbortController().signal

  describe(`the destination contract, kept by ${name}`, { concurrency: 4 }, () => {
    test('its numbers make sense', async t => {
      const { destination } = await started(t, () => null)
      assertSensible(destination)
    })

    test('it tells once for each call, and under the same id on every attempt, also after a restart', async t => {
      const { server, told, destination } = await started(t, count => [reset, refuse(500)][count - 1] ?? null)
      const outcomes: DeliveryResult['is'][] = []
      for (let i = 0; i < 3; i++) outcomes.push((await destination.deliver(joined(), running)).is)
      const restarted = await open(server.url, t)
      outcomes.push((await restarted.deliver(joined(), running)).is)
      assert.deepEqual(outcomes, ['unclear', 'unclear', 'delivered', 'delivered'])
      assert.equal(told.length, 4)
      assert.equal(new Set(told.map(({ id }) => id)).size, 1)
      if (destination.repeatable > 0) assert.notEqual(told[0]?.id ?? '', '', 'a repetition is recognised by its id')
    })

    test('as many at once as it allows, and more, are told once each, under ids of their own', async t => {
      const { told, destination } = await started(t, () => null)
      const events = Array.from({ length: destination.concurrency + 2 }, (_, i) => joined(i))
      const outcomes = await Promise.all(events.map(event => destination.deliver(event, running)))
      assert.deepEqual(new Set(outcomes.map(({ is }) => is)), new Set(['delivered']))
      assert.equal(told.length, events.length)
      if (destination.repeatable > 0) assert.equal(new Set(told.map(({ id }) => id)).size, events.length)
    })

    const all: typeof answers = {
      ...answers,
      '410': [refuse(410), can.gone ? { is: 'gone' } : misconfigured],
      'a 200 that is cut in the middle': [
        cut({ status: 200, body: { ok: true } }, 5),
        can.statusAlone ? delivered : unclear,
      ],
    }
    for (const [what, [deed, usually]] of Object.entries(all)) {
      const expected = usually === refused && can.refuse === false ? misconfigured : usually
      test(`${what} is ${expected.is}, after one attempt`, async t => {
        const { server, told, destination } = await started(t, () => deed)
        const outcome = await destination.deliver(joined(), running)
        assert.equal(outcome.is, expected.is, JSON.stringify(outcome))
        const retryAfter = 'retryAfter' in outcome ? outcome.retryAfter : undefined
        if (expected.retryAfter === 'some') assert.ok(retryAfter !== undefined && retryAfter >= 1_000)
        else assert.equal(retryAfter, expected.retryAfter)
        assert.equal(told.length, 1)
        assert.ok(
          server.received.every(({ path }) => path !== '/elsewhere'),
          'a redirect was followed',
        )
        assertDiscreet(outcome, secrets)
      })
    }

    test('when the process stops, what was sent is not certain, and what waits is not sent', async t => {
      const begun = await started(t, () => never)
      const { destination } = begun
      const stop = new AbortController()
      const events = Array.from({ length: destination.concurrency * 3 }, (_, i) => joined(i))
      const outcomes = events.map(event => destination.deliver(event, stop.signal))
      await heard(begun, 1)
      stop.abort()
      const all = await Promise.all(outcomes)
      assert.equal(all[0]!.is, 'unclear')
      for (const outcome of all) {
        assert.ok(outcome.is === 'unreached' || outcome.is === 'unclear', outcome.is)
        assertDiscreet(outcome, secrets)
      }
      const uncertain = all.filter(({ is }) => is === 'unclear').length
      assert.ok(begun.server.received.length <= uncertain, 'what arrived is said to have no effect')
    })

    test('nothing is told when the process stops before the call', async t => {
      const { server, destination } = await started(t, () => null)
      const outcome = await destination.deliver(joined(), AbortSignal.abort())
      assert.equal(outcome.is, 'unreached')
      assert.equal(server.received.length, 0)
    })

    test('nothing is told when it may no longer begin', async t => {
      const { server, destination } = await started(t, () => null)
      if (destination.concurrency === 1) return t.skip('nothing else is under way that could forbid it')
      const outcome = await destination.deliver(joined(), running, () => false)
      assert.ok(outcome.is === 'unreached' && outcome.notSent === true, JSON.stringify(outcome))
      assert.equal(server.received.length, 0)
    })
  })
}
