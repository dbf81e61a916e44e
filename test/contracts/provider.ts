import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { allVendors, type VendorName } from '../../src/providers/list.ts'
import { openProvider } from '../../src/providers/open.ts'
import { type Contact, eventId, type WaitlistEvent } from '../../src/signup/contact.ts'
import type { DeliveryResult, Failure } from '../../src/waitlist/ports/destination.ts'
import type { Creation, Provider } from '../../src/waitlist/ports/provider.ts'
import { type Misbehaviour, type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { destinationContract } from './destination.ts'
import { convergence } from './provider.convergence.ts'
import { invitingContract } from './provider.inviting.ts'
import { type Joining, joiningContract } from './provider.joining.ts'
import { removalContract } from './provider.removal.ts'
import { type SourceTold, sourcesContract } from './provider.sources.ts'

const vendors = await allVendors()

/** A vendor's server, as its documentation describes it: keeps contacts and answers like it. */
export interface VendorFake {
  answer(asked: Received): Said
  /** Puts a contact there long ago, as if the owner had; with what its name and fields were. */
  had(email: string): void
  /** All that is kept of the contact of an address, in a form that shows any change; undefined: there is none. */
  kept(email: string): unknown
  /** How many contacts there are with this address. */
  count(email: string): number
  /** How often the automation started for this address: what the vendor recognises as a repetition does not count. */
  starts(email: string): number
  /** Whether the contact is on all lists and has all tags that the settings name; absent: the vendor has none. */
  joined?(email: string): boolean
}

/** The request that starts a vendor's automation. */
export interface Start {
  readonly path: RegExp
  /** The documented answer. */
  readonly done: Said
  /** Whether a 2xx needs no body; absent: it does. */
  readonly statusAlone?: boolean
  /** By what the vendor recognises a repetition; absent: by nothing. */
  id?(asked: Received): string | undefined
}

export interface VendorUnderTest {
  readonly vendor: VendorName
  /** The environment of an operator whose vendor answers at `url`, with an automation. */
  settings(url: string): Record<string, string>
  /** What to change for a key that the vendor does not know. */
  readonly wrongKey: Record<string, string>
  /** What to change for a list, tag or other setting that the vendor does not know, where a creation would show it. */
  readonly wrongSetting?: Record<string, string>
  fake(): VendorFake
  /** Null: there is nothing to start. */
  readonly start: Start | null
  /** What `PROVIDER_EXISTING=join` may change. */
  readonly joining?: Joining
  /** An address that the fake refuses for good, as the vendor documents; absent: the vendor refuses none. */
  readonly refused?: string
  /** Whether a new contact gets an id; absent: yes. */
  readonly tellsId?: boolean
  /** A call of the check that is no GET and yet changes nothing. */
  readonly harmless?: string
  /** Whether the status alone tells that a creation took place, whatever the body is. */
  readonly statusAlone?: boolean
  /** What is told of where a signup came from; absent: nothing. */
  readonly sources?: SourceTold
}

const CONTACT_ID = '01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e6f'

export const contactOf = (email: string, more: Partial<Contact> = {}): Contact => ({
  id: CONTACT_ID,
  name: 'Ada King Lovelace',
  email,
  state: 'pending',
  createdAt: new Date(),
  ...more,
})

export const eventOf = (contact: Contact): WaitlistEvent => {
  return { kind: 'joined', id: eventId(contact, 'joined'), name: 'waitlist.joined', at: new Date(), contact }
}

/** Milliseconds for answers that come, on a machine that is busy. */
export const PATIENT = 20_000

/** Opens the provider as the program does: from the environment. Closed when the test ends. */
export async function opened(
  t: Pick<TestContext, 'after'>,
  { vendor }: Pick<VendorUnderTest, 'vendor'>,
  env: Record<string, string>,
  timeout = PATIENT,
  automationTimeout?: number,
): Promise<Provider> {
  const result = await readConfig({ PROVIDER: vendor, ...env })
  assert.ok('config' in result, JSON.stringify(result))
  const { provider } = result.config
  assert.ok(provider !== null)
  const open = await openProvider(provider, {
    timeout,
    automationTimeout,
    existing: result.config.providerExisting,
  })
  t.after(() => open.close())
  return open
}

const never = new AbortController().signal
export const isFailure = (each: { readonly is: string }): each is Failure =>
  each.is === 'unreached' || each.is === 'unclear' || each.is === 'misconfigured'

/**
 * What a creation is taken for when its only or last request meets this. How a call can fail is the caller's
 * (test/outbound/caller.test.ts); here is what a vendor's client makes of each kind of failure, and of a senseless answer.
 */
const classOf = {
  'reset after': 'unclear',
  '503': 'unreached',
  'truncated JSON': 'unclear',
  'cut in the middle': 'unclear',
  'wrong types': 'unclear',
} as const satisfies Partial<Record<Misbehaviour, Creation['is']>>
/** Those whose status is a success. */
const ANSWERED: ReadonlySet<string> = new Set<Misbehaviour>(['truncated JSON', 'cut in the middle', 'wrong types'])
export type Met = keyof typeof classOf
export const met = Object.keys(classOf) as readonly Met[]

/** The promises of `Provider` (waitlist/ports/provider.ts), and those of the vendor's file, held against a fake of the vendor. */
export function providerContract(under: VendorUnderTest): void {
  const { title, promises } = vendors[under.vendor]

  const started = async (t: TestContext, change: Record<string, string> = {}, timeout?: number) => {
    const fake = under.fake()
    const server = await startReceiver(t, fake.answer)
    const provider = await opened(t, under, { ...under.settings(server.url), ...change }, timeout)
    return { fake, server, provider }
  }

  /** No address and nothing secret is said to the log. */
  function assertDiscreet(said: Creation | DeliveryResult | null, url: string, email: string): void {
    if (said === null || !isFailure(said)) return
    assert.notEqual(said.why, '')
    const text = said.why.toLowerCase()
    assert.ok(!text.includes(email), said.why)
    for (const [name, value] of Object.entries(under.settings(url))) {
      if (/KEY|TOKEN/.test(name)) assert.ok(!said.why.includes(value), said.why)
    }
  }

  describe(`the provider contract, kept by ${title}`, { concurrency: 4 }, () => {
    test('a new address is created, once, in lower case, and with its id', async t => {
      const { fake, provider } = await started(t)
      const creation = await provider.createContact(contactOf('Ada@Example.com'), false, never)
      assert.equal(creation.is, 'created', JSON.stringify(creation))
      if (under.tellsId !== false) assert.ok('providerId' in creation && creation.providerId)
      assert.equal(fake.count('ada@example.com'), 1)
      assert.equal(fake.starts('ada@example.com'), 0, 'the automation is started by the event alone')
    })

    test('an address that was there before is existing, if that can be told, and nothing of it is changed', async t => {
      const { fake, provider } = await started(t)
      fake.had('ada@example.com')
      const before = JSON.stringify(fake.kept('ada@example.com'))
      const creation = await provider.createContact(contactOf('ada@example.com'), false, never)
      assert.equal(creation.is, promises.newness === 'none' ? 'created' : 'existing', JSON.stringify(creation))
      assert.equal(JSON.stringify(fake.kept('ada@example.com')), before)
      assert.equal(fake.starts('ada@example.com'), 0)
    })

    test('of two simultaneous creations one is created, where newness is atomic', async t => {
      const { fake, provider } = await started(t)
      const both = await Promise.all(
        [1, 2].map(() => provider.createContact(contactOf('ada@example.com'), false, never)),
      )
      assert.equal(fake.count('ada@example.com'), 1)
      const kinds = both.map(({ is }) => is).sort()
      if (promises.newness === 'atomic') assert.deepEqual(kinds, ['created', 'existing'])
      else assert.ok(kinds.includes('created'))
    })

    test('in doubt, a contact of ours is told from one that was there before, where the vendor allows it', async t => {
      const { fake, provider } = await started(t)
      fake.had('old@example.com')
      const old = await provider.createContact(contactOf('old@example.com'), true, never)
      if (promises.recognisesOwn) assert.ok(old.is === 'existing' && old.ours === false, JSON.stringify(old))

      const ada = contactOf('ada@example.com')
      await provider.createContact(ada, false, never)
      const again = await provider.createContact(ada, true, never)
      assert.ok(again.is === 'existing' || again.is === 'created', JSON.stringify(again))
      if (again.is === 'existing') assert.notEqual(again.ours, false)
      assert.equal(fake.count('ada@example.com'), 1)
    })

    test('a key that the vendor does not know is our mistake, in all calls', async t => {
      const { fake, server, provider } = await started(t, under.wrongKey)
      const ada = contactOf('ada@example.com')
      const said = [
        await provider.createContact(ada, false, never),
        (await provider.automation?.deliver(eventOf(ada), never)) ?? null,
        (await provider.check(never)) ?? null,
      ]
      for (const each of said) {
        if (each !== null) assert.equal(each.is, 'misconfigured', JSON.stringify(each))
        assertDiscreet(each, server.url, 'ada@example.com')
      }
      assert.equal(fake.count('ada@example.com'), 0)
      assert.equal(fake.starts('ada@example.com'), 0)
    })

    test('a good key passes the check', async t => {
      const { fake, server, provider } = await started(t)
      assert.equal(await provider.check(never), null)
      const isHarmless = ({ method, path, json }: Received) =>
        method === 'GET' || JSON.stringify(json) === '{}' || `${method} ${path}` === under.harmless
      assert.ok(server.received.length <= 5 && server.received.every(isHarmless))
      assert.equal(fake.count('ada@example.com'), 0)
    })

    test('a setting that the vendor does not know is our mistake, and no reason to drop the signup', async t => {
      if (under.wrongSetting === undefined) return t.skip('no setting of this vendor takes part in a creation')
      const { provider } = await started(t, under.wrongSetting)
      const creation = await provider.createContact(contactOf('ada@example.com'), false, never)
      assert.equal(creation.is, 'misconfigured', JSON.stringify(creation))
    })

    test('an address that is refused for good is refused with a reason in plain words', async t => {
      if (under.refused === undefined) return t.skip('this vendor refuses no address')
      const { provider, fake } = await started(t)
      const creation = await provider.createContact(contactOf(under.refused), false, never)
      assert.equal(creation.is, 'refused', JSON.stringify(creation))
      if (creation.is === 'refused') assert.match(creation.reason, /^[a-z][^@<>{}\n]{5,120}$/)
      assert.equal(fake.starts(under.refused), 0)
    })

    test('a 4xx of unknown wording, to any call of a creation, is no reason to drop the signup', async t => {
      const { fake, server, provider } = await started(t)
      await provider.createContact(contactOf('first@example.com'), false, never)
      const calls = server.received.length
      for (const status of [400, 403, 409, 422] as const) {
        for (let answered = 0; answered < calls; answered++) {
          const email = `ada.${status}.${answered}@example.com`
          server.next(...Array(answered).fill(null), `${status} of unknown wording`)
          const creation = await provider.createContact(contactOf(email), false, never)
          assert.ok(isFailure(creation) || (status === 409 && creation.is === 'existing'), JSON.stringify(creation))
          assert.equal(fake.starts(email), 0)
        }
      }
    })

    for (const what of met) {
      const expected = under.statusAlone && ANSWERED.has(what) ? 'created' : classOf[what]
      test(`a creation that meets "${what}" is ${expected}`, async t => {
        const { fake, server, provider } = await started(t)
        // How many requests a creation takes; the last one meets the misbehaviour.
        await provider.createContact(contactOf('first@example.com'), false, never)
        server.next(...server.received.slice(1).map(() => null), what)
        const creation = await provider.createContact(contactOf('ada@example.com'), false, never)
        assert.equal(creation.is, expected, JSON.stringify(creation))
        assertDiscreet(creation, server.url, 'ada@example.com')
        assert.ok(fake.count('ada@example.com') <= 1)
      })
    }

    test('the automation starts once for one event, however often it is told where repetitions are recognised', async t => {
      const { fake, provider } = await started(t)
      const { automation } = provider
      if (under.start === null) return assert.equal(automation, null, 'there is nothing to start')
      assert.ok(automation !== null, 'the settings of the test have one')
      const ada = contactOf('ada@example.com')
      const creation = await provider.createContact(ada, false, never)
      assert.ok(creation.is === 'created')
      const { providerId } = creation
      const event = eventOf({ ...ada, state: 'listed', ...(providerId === undefined ? {} : { providerId }) })
      const times = automation.repeatable > 0 ? 3 : 1
      for (let i = 0; i < times; i++) assert.deepEqual(await automation.deliver(event, never), { is: 'delivered' })
      assert.equal(fake.starts('ada@example.com'), 1)
      assert.equal(automation.repeatable, promises.repeatable)
    })

    joiningContract(under)
    sourcesContract(under)
    invitingContract(under)
    removalContract(under)
    convergence(under)
  })
  startContract(under, title)
}

/** Its automation is a destination like any other. */
function startContract({ vendor, start, settings }: VendorUnderTest, title: string): void {
  if (start === null) return
  const { path, done, statusAlone = false, id } = start
  destinationContract({
    name: `the automation of ${title}`,
    async open(url, t) {
      const { automation } = await opened(t, { vendor }, settings(url))
      assert.ok(automation !== null)
      return automation
    },
    receiver: () => () => done,
    telling(received) {
      if (!path.test(received.path)) return null
      const known = id?.(received)
      return known === undefined ? {} : { id: known }
    },
    can: { gone: false, statusAlone },
    secrets: Object.entries(settings('')).flatMap(([name, value]) => (/KEY|TOKEN/.test(name) ? [value] : [])),
  })
}
