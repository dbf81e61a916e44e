import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as passes } from 'node:timers/promises'
import { type Said, startReceiver } from '../harness/receiver.ts'
import { contactOf, isFailure, met, opened, type VendorUnderTest } from './provider.ts'

export interface Joining {
  readonly settings?: Record<string, string>
  /** The members that change, of what the fake keeps of a contact. */
  readonly members: readonly string[]
  /** For a vendor that is told of each list in a call of its own. */
  readonly each?: {
    /** The setting that names the lists, and the paths of the calls. */
    readonly setting: string
    readonly path: RegExp
    /** Absent: the setting names one alone. */
    added?(id: string): Said
    /** Whether a creation needs no call for it. */
    readonly atCreation?: true
  }
}

const never = new AbortController().signal
const email = 'ada@example.com'
const old = 'old@example.com'
/** As many as the settings take. */
const ids = Array.from({ length: 20 }, (_, i) => String(1_001 + i))

/** Who joins the lists: those who are new and, with `PROVIDER_EXISTING=join`, those that the vendor had before. */
export function joiningContract(under: VendorUnderTest): void {
  const { joining } = under
  if (joining === undefined) return
  const { settings = {}, members, each } = joining
  const ada = contactOf(email)

  const started = async (t: TestContext, existing: string) => {
    const fake = under.fake()
    fake.had(old)
    const server = await startReceiver(t, fake.answer)
    const env = { ...under.settings(server.url), ...settings, PROVIDER_EXISTING: existing }
    return { fake, server, provider: await opened(t, under, env) }
  }
  const rest = (kept: unknown) => Object.entries(kept as object).filter(([name]) => !members.includes(name))

  describe('a new contact that is to join lists', () => {
    for (const what of [...met, '403 of unknown wording', '422 of unknown wording'] as const) {
      test(`joins in the end when the last call of its creation meets "${what}", and stays new`, async t => {
        const { fake, server, provider } = await started(t, 'leave')
        assert.equal((await provider.createContact(contactOf('first@example.com'), false, never)).is, 'created')
        assert.equal(fake.joined!('first@example.com'), true)
        server.next(...server.received.slice(1).map(() => null), what)
        const first = await provider.createContact(ada, false, never)
        assert.ok(first.is === 'created' || isFailure(first), JSON.stringify(first))
        if (first.is !== 'created') {
          const doubt = first.is === 'unclear' || (first.is === 'misconfigured' && first.tookEffect === true)
          const second = await provider.createContact(ada, doubt, never)
          assert.ok(second.is === 'created' || (second.is === 'existing' && doubt), JSON.stringify(second))
          if (second.is === 'existing') assert.notEqual(second.ours, false)
        }
        assert.equal(fake.joined!(email), true)
        assert.deepEqual([fake.count(email), fake.starts(email)], [1, 0])
      })
    }
  })

  describe('a contact that it had before', () => {
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

    for (const what of [...met, '403 of unknown wording'] as const) {
      test(`joins in the end when the last call meets "${what}", and is never taken for new`, async t => {
        const { fake, server, provider } = await started(t, 'join')
        await provider.createContact(contactOf(old), false, never)
        const other = 'old-2@example.com'
        fake.had(other)
        server.next(...server.received.slice(1).map(() => null), what)
        const creation = await provider.createContact(contactOf(other), false, never)
        assert.ok(['existing', 'unreached', 'misconfigured'].includes(creation.is), JSON.stringify(creation))
        assert.ok(!('tookEffect' in creation), 'a doubt would make it count as new')
        for (let left = 50; (await provider.createContact(contactOf(other), false, never)).is !== 'existing'; left--) {
          assert.ok(left > 0, 'it never joins')
          await passes(100)
        }
        assert.equal(fake.joined!(other), true)
        assert.equal(fake.count(other), 1)
      })
    }
  })

  if (each === undefined) return
  const { setting, path, added, atCreation = false } = each

  /** In front of a vendor that says this of each list. */
  async function saying(t: TestContext, lists: readonly string[], says: (id: string) => Said) {
    const fake = under.fake()
    const server = await startReceiver(t, one => {
      const id = one.method === 'GET' ? undefined : path.exec(one.path)?.[1]
      return id === undefined ? fake.answer(one) : says(id)
    })
    const env = { ...under.settings(server.url), [setting]: lists.join(), PROVIDER_EXISTING: 'join' }
    return { fake, server, env, provider: await opened(t, under, env) }
  }

  for (const who of ['a new contact', 'a known one']) {
    if (added === undefined || (who === 'a new contact' && atCreation)) continue
    test(`${who} joins as many lists as the settings take, although one after another takes too long`, async t => {
      const joined = new Set<string>()
      const { fake, server, env } = await saying(t, ids, id => {
        joined.add(id)
        return added(id)
      })
      // Every answer takes 60 ms.
      server.chaos(1, 1, ['slow'])
      const provider = await opened(t, under, env, 900)
      if (who === 'a known one') fake.had(email)
      let is = ''
      for (let attempts = 0; attempts < 150 && is !== 'created' && is !== 'existing'; attempts++) {
        is = (await provider.createContact(ada, attempts > 0, never)).is
      }
      assert.ok(is === 'created' || is === 'existing', is)
      assert.deepEqual([...joined].sort(), ids)
    })
  }

  for (const status of [400, 422]) {
    test(`a list that refuses one contact with ${status}: who is known stays as it is, who is new is completed later`, async t => {
      const refused = { status, body: { message: 'Somebody who has left cannot be added' } }
      const { fake, server, provider } = await saying(t, ids.slice(0, 1), () => refused)
      fake.had(old)
      assert.equal((await provider.createContact(contactOf(old), false, never)).is, 'existing')
      assert.match(server.received.at(-1)!.path, path)
      if (atCreation) return
      const creation = await provider.createContact(ada, false, never)
      assert.ok(creation.is === 'misconfigured' && creation.tookEffect, JSON.stringify(creation))
    })
  }

  if (added === undefined || atCreation) return
  test('nothing is begun after a list that failed', async t => {
    const { server, provider } = await saying(t, ids, () => ({ status: 500 }))
    assert.equal((await provider.createContact(ada, false, never)).is, 'unclear')
    assert.equal(server.received.filter(({ method, path: at }) => method !== 'GET' && path.test(at)).length, 5)
  })
}
