import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type VendorName, vendorNames } from '../../src/providers/list.ts'
import { destinationContract, joined } from '../contracts/destination.ts'
import { opened } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { beehiivSettings } from './beehiiv.fake.ts'
import { brevoSettings } from './brevo.fake.ts'
import { buttondownSettings } from './buttondown.fake.ts'
import { customerioSettings, pipelinesSettings } from './customerio.fake.ts'
import { ghostSettings } from './ghost.fake.ts'
import { hubspotSettings } from './hubspot.fake.ts'
import { kitSettings } from './kit.fake.ts'
import { klaviyoSettings } from './klaviyo.fake.ts'
import { listmonkSettings } from './listmonk.fake.ts'
import { loopsSettings } from './loops.fake.ts'
import { mailchimpSettings } from './mailchimp.fake.ts'
import { mailerliteSettings } from './mailerlite.fake.ts'
import { plunkSettings } from './plunk.fake.ts'
import { resendSettings } from './resend.fake.ts'

/** The request that starts a vendor's automation; null: there is nothing to start. */
interface Start {
  settings(url: string): Record<string, string>
  readonly path: RegExp
  /** The documented answer. */
  readonly done: Said
  /** Whether a 2xx needs no body; absent: it does. */
  readonly statusAlone?: boolean
  /** By what the vendor recognises a repetition; absent: by nothing. */
  id?(asked: Asked): string | undefined
}

const none: Said = { status: 204 }

const starts: Readonly<Record<VendorName, Start | null>> = {
  loops: {
    settings: loopsSettings,
    path: /^\/api\/v1\/events\/send$/,
    done: { status: 200, body: { success: true } },
    id: ({ headers }) => headers['idempotency-key'],
  },
  resend: {
    settings: resendSettings,
    path: /^\/events\/send$/,
    done: { status: 202, body: { object: 'event', event: 'waitlist.joined' } },
  },
  kit: {
    settings: kitSettings,
    path: /^\/v4\/tags\/\d+\/subscribers$/,
    done: { status: 201, body: { subscriber: { id: 7 } } },
    id: ({ json }) => json.email_address,
  },
  brevo: { settings: brevoSettings, path: /^\/v3\/events$/, done: none },
  mailchimp: { settings: mailchimpSettings, path: /\/members\/[0-9a-f]{32}\/events$/, done: none },
  plunk: {
    settings: plunkSettings,
    path: /^\/v1\/track$/,
    done: { status: 200, body: { success: true, data: { contact: 'c', event: 'e', timestamp: 't' } } },
    id: ({ headers }) => headers['idempotency-key'],
  },
  listmonk: { settings: listmonkSettings, path: /^\/api\/tx$/, done: { status: 200, body: { data: true } } },
  klaviyo: {
    settings: klaviyoSettings,
    path: /^\/api\/events$/,
    done: { status: 202 },
    id: ({ json }) => json.data.attributes.unique_id,
  },
  hubspot: {
    settings: hubspotSettings,
    path: /^\/events\/custom\/2026-09\/send$/,
    done: none,
    id: ({ json }) => json.uuid,
  },
  buttondown: {
    settings: buttondownSettings,
    path: /^\/v1\/subscribers\/[^/]+\/emails\/[^/]+$/,
    done: { status: 200, body: {} },
    id: ({ headers }) => headers['x-idempotency-key'],
  },
  customerio: {
    settings: customerioSettings,
    path: /^\/api\/v1\/customers\/[^/]+\/events$/,
    done: { status: 200, body: {} },
    statusAlone: true,
    id: ({ json }) => json.id,
  },
  mailerlite: {
    settings: mailerliteSettings,
    path: /^\/api\/subscribers\/[^/]+\/groups\/[^/]+$/,
    done: { status: 200, body: { data: { id: mailerliteSettings('').MAILERLITE_GROUP_ID } } },
    id: ({ path }) => path.split('/')[3],
  },
  beehiiv: {
    settings: beehiivSettings,
    path: /^\/publications\/[^/]+\/automations\/[^/]+\/journeys$/,
    done: { status: 200, body: { data: { id: 'aj_1', automation_id: 'aut_1', status: 'in_progress' } } },
  },
  ghost: null,
}

const isSecret = (name: string): boolean => /KEY|TOKEN/.test(name)

/** Of a vendor with another API. */
const pipelines: Start = {
  settings: pipelinesSettings,
  path: /^\/v1\/track$/,
  done: { status: 200, body: {} },
  statusAlone: true,
  id: ({ json }) => json.messageId,
}
const all: [vendor: VendorName, start: Start | null, name: string][] = [
  ...vendorNames.map((vendor): [VendorName, Start | null, string] => [vendor, starts[vendor], vendor]),
  ['customerio', pipelines, 'customerio, Pipelines API'],
]

for (const [vendor, start, name] of all) {
  if (start === null) continue
  const { settings, path, done, statusAlone = false, id } = start
  destinationContract({
    name: `the automation of ${name}`,
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
    secrets: Object.entries(settings(''))
      .filter(([name]) => isSecret(name))
      .map(([, value]) => value),
  })
}

test('a start is waited for when it takes longer than a visitor would wait', async t => {
  const server = await startVendor(t, () => starts.resend!.done)
  const { automation } = await opened(t, { vendor: 'resend' }, resendSettings(server.url), 20)
  server.next('slow')
  assert.deepEqual(await automation!.deliver(joined(), new AbortController().signal), { is: 'delivered' })
})

test('every vendor is here', () => assert.deepEqual(Object.keys(starts), vendorNames))

test('Ghost has nothing to start, whatever its settings are', async t => {
  const env = { GHOST_LABELS: 'a', GHOST_NEWSLETTER_IDS: 'b', GHOST_EMAIL_TYPE: 'signup' }
  const { automation } = await opened(t, { vendor: 'ghost' }, { ...ghostSettings('http://127.0.0.1:9'), ...env })
  assert.equal(automation, null)
})
