import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { VendorName } from '../../src/providers/list.ts'
import { contactOf, opened, type VendorFake } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { customerioFake, customerioSettings } from './customerio.fake.ts'
import { hubspotFake, hubspotSettings } from './hubspot.fake.ts'
import { kitFake, kitSettings } from './kit.fake.ts'
import { klaviyoFake, klaviyoSettings } from './klaviyo.fake.ts'
import { mailerliteFake, mailerliteSettings } from './mailerlite.fake.ts'

const never = new AbortController().signal
const ada = contactOf('ada@example.com')
/** As many as the settings take. */
const ids = Array.from({ length: 20 }, (_, i) => String(1_001 + i))

interface Joining {
  readonly vendor: VendorName
  fake(): VendorFake
  settings(url: string): Record<string, string>
  /** The setting that names what is joined. */
  readonly setting: string
  /** What is joined, in the path of its call. */
  readonly path: RegExp
  /** Absent: the setting names one alone. */
  added?(id: string): Said
  /** Whether a creation needs no call for it. */
  readonly atCreation?: true
}

const joinings: readonly Joining[] = [
  {
    vendor: 'kit',
    fake: kitFake,
    settings: kitSettings,
    setting: 'KIT_TAG_IDS',
    path: /^\/v4\/tags\/(\d+)\/subscribers\/1$/,
    added: () => ({ status: 201, body: { subscriber: { id: 1 } } }),
  },
  {
    vendor: 'hubspot',
    fake: hubspotFake,
    settings: hubspotSettings,
    setting: 'HUBSPOT_LIST_IDS',
    path: /^\/crm\/lists\/2026-09\/(\d+)\/memberships\/add$/,
    added: () => ({ status: 200, body: { recordsIdsAdded: ['1001'], recordIdsMissing: [] } }),
  },
  {
    vendor: 'mailerlite',
    fake: mailerliteFake,
    settings: mailerliteSettings,
    setting: 'MAILERLITE_GROUP_IDS',
    path: /^\/api\/subscribers\/\d+\/groups\/(\d+)$/,
    added: id => ({ status: 200, body: { data: { id } } }),
    atCreation: true,
  },
  {
    vendor: 'klaviyo',
    fake: klaviyoFake,
    settings: klaviyoSettings,
    setting: 'KLAVIYO_LIST_ID',
    path: /^\/api\/lists\/(\w+)\/relationships\/profiles$/,
  },
  {
    vendor: 'customerio',
    fake: customerioFake,
    settings: customerioSettings,
    setting: 'CUSTOMERIO_SEGMENT_ID',
    path: /^\/api\/v1\/segments\/(\d+)\/add_customers$/,
  },
]

describe('as many lists as the settings take', { concurrency: true }, () => {
  for (const { vendor, fake: made, settings, setting, path, added, atCreation } of joinings) {
    for (const who of ['a new contact', 'a known one'] as const) {
      if (added === undefined || (who === 'a new contact' && atCreation)) continue
      test(`${vendor}: ${who} joins them all, although one after another takes longer than the timeout`, async t => {
        const fake = made()
        const joined = new Set<string>()
        const server = await startVendor(t, (asked: Asked) => {
          const id = path.exec(asked.path)?.[1]
          if (id === undefined || asked.method === 'GET') return fake.answer(asked)
          joined.add(id)
          return added(id)
        })
        // Every answer takes 60 ms.
        server.chaos(1, 1, ['slow'])
        const env = { ...settings(server.url), [setting]: ids.join(), PROVIDER_EXISTING: 'join' }
        const provider = await opened(t, { vendor }, env, 900)
        if (who === 'a known one') fake.had(ada.email)
        let is = ''
        for (let attempts = 0; attempts < 20 && is !== 'created' && is !== 'existing'; attempts++) {
          is = (await provider.createContact(ada, attempts > 0, never)).is
        }
        assert.ok(is === 'created' || is === 'existing', is)
        assert.deepEqual([...joined].sort(), ids)
      })
    }
  }
})

describe('a list that is refused for one contact', { concurrency: true }, () => {
  for (const { vendor, fake: made, settings, setting, path, atCreation } of joinings) {
    for (const status of [400, 422]) {
      test(`${vendor}, ${status}: who is known stays as it is, and who is new is completed later`, async t => {
        const fake = made()
        const refused = { status, body: { message: 'Somebody who has left cannot be added' } }
        const server = await startVendor(t, asked => (path.test(asked.path) ? refused : fake.answer(asked)))
        const env = { ...settings(server.url), [setting]: ids[0]!, PROVIDER_EXISTING: 'join' }
        const provider = await opened(t, { vendor }, env)
        fake.had('old@example.com')
        assert.equal((await provider.createContact(contactOf('old@example.com'), false, never)).is, 'existing')
        assert.match(server.asked.at(-1)!.path, path)
        if (atCreation) return
        const creation = await provider.createContact(ada, false, never)
        assert.ok(creation.is === 'misconfigured' && creation.tookEffect, JSON.stringify(creation))
      })
    }
  }
})

test('nothing is begun after a failure', async t => {
  const [{ vendor, settings, setting, path }] = joinings as readonly [Joining]
  const fake = kitFake()
  const server = await startVendor(t, asked => (path.test(asked.path) ? { status: 500 } : fake.answer(asked)))
  const provider = await opened(t, { vendor }, { ...settings(server.url), [setting]: ids.join() })
  assert.equal((await provider.createContact(ada, false, never)).is, 'unclear')
  assert.equal(server.asked.filter(asked => path.test(asked.path)).length, 5)
})
