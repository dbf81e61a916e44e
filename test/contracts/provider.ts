import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as passes } from 'node:timers/promises'
import { readConfig } from '../../src/config/config.ts'
import { allVendors, type VendorName } from '../../src/providers/list.ts'
import { openProvider } from '../../src/providers/open.ts'
import type { Promises } from '../../src/providers/vendor.ts'
import type { DeliveryResult, Failure } from '../../src/waitlist/ports/destination.ts'
import type { Creation, Provider } from '../../src/waitlist/ports/provider.ts'
import { type Contact, eventId, type JoinedEvent } from '../../src/waitlist/rules/contact.ts'
import { type Asked, type Misbehaviour, misbehaviours, type Said, startVendor, tookEffect } from '../harness/vendor.ts'
import { destinationContract } from './destination.ts'
import { convergence } from './provider.convergence.ts'
import { removalContract } from './provider.removal.ts'

const vendors = await allVendors()

/** A vendor's server, as its documentation describes it: keeps contacts and answers like it. */
export interface VendorFake {
  answer(asked: Asked): Said
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
  id?(asked: Asked): string | undefined
}

export interface VendorUnderTest {
  readonly vendor: VendorName
  /** Its API that the settings choose, where there are several. */
  readonly api?: string
  /** What these settings promise less than the vendor's file. */
  readonly promises?: Partial<Promises>
  /** The environment of an operator whose vendor answers at `url`, with an automation. */
  settings(url: string): Record<string, string>
  /** What to change for a key that the vendor does not know. */
  readonly wrongKey: Record<string, string>
  /** What to change for a list, tag or other setting that the vendor does not know, where a creation would show it. */
  readonly wrongSetting?: Record<string, string>
  fake(): VendorFake
  /** Null: there is nothing to start. */
  readonly start: Start | null
  /** What `PROVIDER_EXISTING=join` may change: settings to add, and the members of what the fake keeps of a contact. */
  readonly joining?: { readonly settings?: Record<string, string>; readonly members: readonly string[] }
  /** What to change as well where addresses are looked up with a key of its own. */
  readonly wrongLookupKey?: Record<string, string>
  /** An address that the fake refuses for good, as the vendor documents; absent: the vendor refuses none. */
  readonly refused?: string
  /** Whether a new contact gets an id; absent: yes. */
  readonly tellsId?: boolean
  /** A call of the check that is no GET and yet changes nothing. */
  readonly harmless?: string
  /** Misbehaviours that this vendor's answers give another class, each with the class, because …: see the test file. */
  readonly exceptions?: Partial<Record<Misbehaviour, readonly (Creation | DeliveryResult)['is'][]>>
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

export const eventOf = (contact: Contact): JoinedEvent => {
  return { id: eventId(contact), name: 'waitlist.joined', at: new Date(), contact }
}

/** Milliseconds for answers that come, on a machine that is busy; and for those that never come. */
export const PATIENT = 20_000
export const SHORT = 2_000

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
const isFailure = (each: { readonly is: string }): each is Failure =>
  each.is === 'unreached' || each.is === 'unclear' || each.is === 'misconfigured'

/** What each misbehaviour must be taken for when it is the answer to the only or the last request of a creation. */
const classOf: Readonly<Record<Misbehaviour, readonly string[]>> = {
  'hang before': ['unclear'],
  'hang after': ['unclear'],
  'reset before': ['unclear'],
  'reset after': ['unclear'],
  '500 before': ['unclear'],
  '500 after': ['unclear'],
  '502 with HTML': ['unclear'],
  '503': ['unreached'],
  '429': ['unreached'],
  '429 with Retry-After': ['unreached'],
  'truncated JSON': ['unclear'],
  'cut in the middle': ['unclear'],
  'huge body': ['unclear'],
  'wrong types': ['unclear'],
  slow: ['created'],
}

/** The promises of `Provider` (waitlist/ports/provider.ts), and those of the vendor's file, held against a fake of the vendor. */
export function providerContract(under: VendorUnderTest): void {
  const title = [vendors[under.vendor].title, ...(under.api === undefined ? [] : [under.api])].join(', ')
  const promises: Promises = { ...vendors[under.vendor].promises, ...under.promises }

  const started = async (t: TestContext, change: Record<string, string> = {}, timeout?: number) => {
    const fake = under.fake()
    const server = await startVendor(t, fake.answer)
    const provider = await opened(t, under, { ...under.settings(server.url), ...change }, timeout)
    return { fake, server, provider }
  }

  /** Nothing of the visitor and nothing secret is said to the log. */
  function assertDiscreet(said: Creation | DeliveryResult | null, url: string, email: string): void {
    if (said === null || !isFailure(said)) return
    assert.notEqual(said.why, '')
    const text = said.why.toLowerCase()
    for (const part of [email, email.split('@')[0]!, 'lovelace']) assert.ok(!text.includes(part), said.why)
    for (const [name, value] of Object.entries(under.settings(url))) {
      if (/KEY|TOKEN/.test(name)) assert.ok(!said.why.includes(value), said.why)
    }
  }

  // Most of the time of each test is spent waiting: for what never comes, or for a turn.
  describe(`the provider contract, kept by ${title}`, { concurrency: 4 }, () => {
    test('a new address is created, once, in lower case, and with its id', async t => {
      const { fake, provider } = await started(t)
      const creation = await provider.createContact(contactOf('Ada@Example.com'), false, never)
      assert.equal(creation.is, 'created', JSON.stringify(creation))
      if (under.tellsId !== false) assert.ok('providerId' in creation && creation.providerId)
      assert.equal(fake.count('ada@example.com'), 1)
      assert.equal(fake.starts('ada@example.com'), 0, 'the automation is started by the event alone')
    })

    test('an address that was there before is existing, and nothing of it is changed', async t => {
      const { fake, provider } = await started(t)
      fake.had('ada@example.com')
      const before = JSON.stringify(fake.kept('ada@example.com'))
      const creation = await provider.createContact(contactOf('ada@example.com'), false, never)
      assert.equal(creation.is, 'existing', JSON.stringify(creation))
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
      assert.equal(old.is, 'existing', JSON.stringify(old))
      if (promises.recognisesOwn) assert.equal((old as { ours?: boolean }).ours, false)

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
      const isHarmless = ({ method, path, json }: Asked) =>
        method === 'GET' || JSON.stringify(json) === '{}' || `${method} ${path}` === under.harmless
      assert.ok(server.asked.length <= 5 && server.asked.every(isHarmless))
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

    for (const status of [400, 403, 409, 422] as const) {
      test(`a ${status} of unknown wording, to any call of a creation, is no reason to drop the signup`, async t => {
        const { fake, server, provider } = await started(t)
        await provider.createContact(contactOf('first@example.com'), false, never)
        const calls = server.asked.length
        for (let answered = 0; answered < calls; answered++) {
          const before = Array.from({ length: answered }, () => 'slow' as const)
          server.next(...before, `${status} of unknown wording`)
          const creation = await provider.createContact(contactOf(`ada${answered}@example.com`), false, never)
          assert.ok(isFailure(creation) || (status === 409 && creation.is === 'existing'), JSON.stringify(creation))
          assert.equal(fake.starts(`ada${answered}@example.com`), 0)
        }
      })
    }

    for (const what of misbehaviours) {
      test(`a creation that meets "${what}" is taken for what it is`, async t => {
        const { fake, server, provider } = await started(t, {}, what.startsWith('hang') ? SHORT : PATIENT)
        // How many requests a creation takes; the last one meets the misbehaviour.
        const patient = await opened(t, under, under.settings(server.url))
        await patient.createContact(contactOf('first@example.com'), false, never)
        const before = Array.from({ length: server.asked.length - 1 }, () => 'slow' as const)
        server.next(...before, what)
        const creation = await provider.createContact(contactOf('ada@example.com'), false, never)
        const expected = under.exceptions?.[what] ?? classOf[what]
        assert.ok(expected.includes(creation.is), `${JSON.stringify(creation)} instead of ${expected}`)
        assertDiscreet(creation, server.url, 'ada@example.com')
        if (creation.is === 'unreached') assert.ok(!tookEffect.has(what))
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

/** Who joins the lists: those who are new and, with `PROVIDER_EXISTING=join`, those that the vendor had before. */
function joiningContract(under: VendorUnderTest): void {
  const { joining } = under
  if (joining === undefined) return
  const { settings = {}, members } = joining
  const old = 'old@example.com'

  const started = async (t: TestContext, existing: string) => {
    const fake = under.fake()
    fake.had(old)
    const server = await startVendor(t, fake.answer)
    const env = { ...under.settings(server.url), ...settings, PROVIDER_EXISTING: existing }
    return { fake, server, env, provider: await opened(t, under, env) }
  }
  const rest = (kept: unknown) => Object.entries(kept as object).filter(([name]) => !members.includes(name))

  describe('a new contact that is to join lists', { concurrency: true }, () => {
    const email = 'ada@example.com'
    const ada = contactOf(email)
    for (const what of [...misbehaviours, '403 of unknown wording', '422 of unknown wording'] as const) {
      test(`joins in the end when the last call of its creation meets "${what}", and stays new`, async t => {
        const { fake, server, env, provider } = await started(t, 'leave')
        const patient = await opened(t, under, env)
        assert.equal((await patient.createContact(contactOf('first@example.com'), false, never)).is, 'created')
        assert.equal(fake.joined!('first@example.com'), true)
        server.next(...server.asked.slice(1).map(() => 'slow' as const), what)
        const leave = what.startsWith('hang') ? AbortSignal.timeout(SHORT) : never
        const first = await provider.createContact(ada, false, leave)
        assert.ok(first.is === 'created' || isFailure(first), JSON.stringify(first))
        if (first.is !== 'created') {
          server.behave()
          const doubt = first.is === 'unclear' || (first.is === 'misconfigured' && first.tookEffect === true)
          const second = await patient.createContact(ada, doubt, never)
          assert.ok(second.is === 'created' || (second.is === 'existing' && doubt), JSON.stringify(second))
          if (second.is === 'existing') assert.notEqual(second.ours, false)
        }
        assert.equal(fake.joined!(email), true)
        assert.deepEqual([fake.count(email), fake.starts(email)], [1, 0])
      })
    }
  })

  describe('a contact that it had before', { concurrency: true }, () => {
    test('is left as it is by default, in doubt too', async t => {
      const { fake, provider } = await started(t, 'leave')
      const before = structuredClone(fake.kept(old))
      for (const doubt of [false, true]) {
        assert.equal((await provider.createContact(contactOf(old), doubt, never)).is, 'existing')
      }
      assert.deepEqual(fake.kept(old), before)
      assert.equal(fake.joined!(old), false)
    })

    test('joins, as often as it signs up, and nothing else about it changes', async t => {
      const { fake, provider } = await started(t, 'join')
      const before = rest(structuredClone(fake.kept(old)))
      for (const doubt of [false, false, true]) {
        const creation = await provider.createContact(contactOf(old), doubt, never)
        assert.equal(creation.is, 'existing', JSON.stringify(creation))
        assert.equal(fake.joined!(old), true)
      }
      assert.deepEqual(rest(fake.kept(old)), before)
      assert.deepEqual([fake.count(old), fake.starts(old)], [1, 0])
    })

    for (const what of [...misbehaviours, '403 of unknown wording'] as const) {
      test(`joins in the end when the last call meets "${what}", and is never taken for new`, async t => {
        const { fake, server, env, provider } = await started(t, 'join')
        await provider.createContact(contactOf(old), false, never)
        const before = Array.from({ length: server.asked.length - 1 }, () => 'slow' as const)
        const other = 'old-2@example.com'
        fake.had(other)
        server.next(...before, what)
        const hasty = what.startsWith('hang') && (await opened(t, under, env, SHORT))
        const creation = await (hasty || provider).createContact(contactOf(other), false, never)
        assert.ok(['existing', 'unreached', 'misconfigured'].includes(creation.is), JSON.stringify(creation))
        assert.ok(!('tookEffect' in creation), 'a doubt would make it count as new')
        server.behave()
        for (let left = 50; (await provider.createContact(contactOf(other), false, never)).is !== 'existing'; left--) {
          assert.ok(left > 0, 'it never joins')
          await passes(100)
        }
        assert.equal(fake.joined!(other), true)
        assert.equal(fake.count(other), 1)
      })
    }
  })
}
