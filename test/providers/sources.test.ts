/** What each vendor is told of where a signup came from, held against the table of docs/providers.md. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, type TestContext, test } from 'node:test'
import { allVendors, type VendorName, vendorNames } from '../../src/providers/list.ts'
import { type Source, sourceParameters } from '../../src/waitlist/rules/contact.ts'
import { contactOf, eventOf, opened, type VendorFake } from '../contracts/provider.ts'
import type { Asked } from '../harness/vendor.ts'
import { recorded } from '../harness/wire.ts'
import { beehiivFake, beehiivSettings } from './beehiiv.fake.ts'
import { brevoFake, brevoSettings } from './brevo.fake.ts'
import { buttondownFake, buttondownSettings } from './buttondown.fake.ts'
import { customerioFake, customerioSettings, pipelinesSettings } from './customerio.fake.ts'
import { ghostFake, ghostSettings } from './ghost.fake.ts'
import { hubspotFake, hubspotSettings } from './hubspot.fake.ts'
import { kitFake, kitFormWithout, kitReferrer, kitSettings } from './kit.fake.ts'
import { klaviyoFake, klaviyoSettings } from './klaviyo.fake.ts'
import { listmonkFake, listmonkSettings } from './listmonk.fake.ts'
import { loopsFake, loopsSettings } from './loops.fake.ts'
import { mailchimpFake, mailchimpSettings } from './mailchimp.fake.ts'
import { mailerliteFake, mailerliteSettings } from './mailerlite.fake.ts'
import { plunkFake, plunkSettings } from './plunk.fake.ts'
import { resendFake, resendSettings } from './resend.fake.ts'

const vendors = await allVendors()

interface Told {
  fake(): VendorFake
  settings(url: string): Record<string, string>
  /** Where a parameter is in the body, if it is sent. */
  readonly contact?: (parameter: string) => string
  readonly event?: (parameter: string) => string
}

const within = (path: string) => (parameter: string) => `${path}.${parameter}`
const FIELDS = ['utm_source', 'utm_medium', 'utm_campaign']

const told: Readonly<Record<VendorName, readonly Told[]>> = {
  loops: [{ fake: loopsFake, settings: loopsSettings, event: within('eventProperties') }],
  resend: [{ fake: resendFake, settings: resendSettings, event: within('payload') }],
  kit: [
    { fake: kitFake, settings: kitSettings },
    {
      fake: kitFake,
      settings: url => ({ ...kitSettings(url), ...kitFormWithout, ...kitReferrer }),
      contact: name => `referrer?${name}`,
    },
  ],
  brevo: [{ fake: brevoFake, settings: brevoSettings, event: within('event_properties') }],
  mailchimp: [{ fake: mailchimpFake, settings: mailchimpSettings }],
  plunk: [{ fake: plunkFake, settings: plunkSettings, contact: within('data') }],
  listmonk: [{ fake: listmonkFake, settings: listmonkSettings, contact: within('attribs') }],
  klaviyo: [
    {
      fake: klaviyoFake,
      settings: klaviyoSettings,
      contact: within('data.attributes.properties'),
      event: within('data.attributes.properties'),
    },
  ],
  hubspot: [{ fake: hubspotFake, settings: hubspotSettings }],
  buttondown: [
    {
      fake: buttondownFake,
      settings: buttondownSettings,
      contact: name => (FIELDS.includes(name) ? name : `metadata.${name}`),
    },
  ],
  customerio: [
    {
      fake: customerioFake,
      settings: customerioSettings,
      contact: name => name,
      event: within('data'),
    },
    {
      fake: customerioFake,
      settings: pipelinesSettings,
      contact: within('traits'),
      event: within('properties'),
    },
    {
      fake: customerioFake,
      settings: url => ({ ...customerioSettings(url), CUSTOMERIO_APP_KEY: '' }),
      event: within('data'),
    },
  ],
  mailerlite: [{ fake: mailerliteFake, settings: mailerliteSettings }],
  beehiiv: [
    {
      fake: beehiivFake,
      settings: beehiivSettings,
      contact: name => (name === 'ref' ? 'referral_code' : name),
    },
  ],
  ghost: [{ fake: ghostFake, settings: ghostSettings }],
}

/** As long as they may be. */
const source = Object.fromEntries(
  sourceParameters.map(name => [name, name.padEnd(100, ' 🚀').toWellFormed()]),
) as Required<Source>
const never = new AbortController().signal
const at = new Date()
const ada = contactOf('ada@example.com', { createdAt: at })

/** The requests of a creation and of the start of the automation. */
async function asked(t: TestContext, vendor: VendorName, one: Told, known: Source | undefined, change = {}) {
  const contact = known === undefined ? ada : { ...ada, source: known }
  return recorded(t, one.fake().answer, async url => {
    const provider = await opened(t, { vendor }, { ...one.settings(url), ...change })
    assert.equal((await provider.createContact(contact, false, never)).is, 'created')
    await provider.automation?.deliver({ ...eventOf({ ...contact, state: 'listed' }), at }, never)
  })
}

/** Where these values are in a body, by the value; in the query of an address, too. */
function* places(body: unknown, path = ''): Generator<[value: string, path: string]> {
  if (typeof body === 'string') yield [body, path]
  if (typeof body === 'string' && URL.canParse(body)) {
    for (const [name, value] of new URL(body).searchParams) yield [value, `${path}?${name}`]
  }
  if (typeof body !== 'object' || body === null) return
  for (const [key, member] of Object.entries(body)) yield* places(member, path === '' ? key : `${path}.${key}`)
}

const isParameter = (name: string) => [...sourceParameters, 'referral_code'].includes(name)

/** Without the source, and without what is empty then. */
function bare(body: unknown): unknown {
  if (typeof body === 'string') return body.split('?')[0]
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  const members = Object.entries(body)
    .filter(([name]) => !isParameter(name))
    .map(([name, member]) => [name, bare(member)] as const)
    .filter(([, member]) => member !== undefined)
  return members.length === 0 ? undefined : Object.fromEntries(members)
}

const without = (requests: readonly Asked[]): unknown =>
  requests.map(({ method, path, query, json }) => [method, path, query, JSON.stringify(bare(json))])

const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8')
const [, part = ''] = page.split('\n## Where a signup came from\n')
const rows = [...part.split('\n## ')[0]!.matchAll(/^\| (.*?) \| (.*?) \| (.*?) \|$/gm)].slice(1)

/** The parameters that a cell of the table names. */
const named = (cell: string): readonly string[] =>
  cell.startsWith('all') ? sourceParameters : sourceParameters.filter(name => cell.includes(`\`${name}\``))

for (const vendor of vendorNames) {
  const { title } = vendors[vendor]

  describe(`where a signup came from, told to ${title}`, () => {
    for (const one of told[vendor]) {
      const api = Object.keys(one.settings('http://127.0.0.1:9')).length
      test(`it is sent as docs/providers.md says, and nothing else changes (${api} settings)`, async t => {
        const requests = await asked(t, vendor, one, source)
        const [, , contact = '–', event = '–'] = rows.find(([, name]) => name === title) ?? []
        const expected = new Map<string, string[]>()
        for (const [cell, place] of [
          [contact, one.contact],
          [event, one.event],
        ] as const) {
          if (place === undefined) continue
          for (const name of named(cell)) expected.set(name, [...(expected.get(name) ?? []), place(name)])
        }
        const found = requests.flatMap(({ json }) => [...places(json)])
        for (const name of sourceParameters) {
          const at = found.filter(([value]) => value === source[name]).map(([, path]) => path)
          assert.deepEqual(at, expected.get(name) ?? [], name)
        }
        const texts = JSON.stringify(requests.map(({ path, query, headers }) => [path, query, headers]))
        assert.ok(!texts.includes('🚀'), 'it is in bodies alone')
        assert.deepEqual(without(requests), without(await asked(t, vendor, one, undefined)))
      })
    }

    test('the table says so of no other', () => {
      const tells = told[vendor].some(({ contact, event }) => contact !== undefined || event !== undefined)
      assert.equal(
        rows.some(([, name]) => name === title),
        tells,
      )
    })
  })
}

test('attributes and event properties of the settings give way to those of the same name', async t => {
  for (const [vendor, setting] of [
    ['listmonk', 'LISTMONK_ATTRIBUTES'],
    ['customerio', 'CUSTOMERIO_ATTRIBUTES'],
    ['loops', 'LOOPS_EVENT_PROPERTIES'],
  ] as const) {
    const requests = await asked(t, vendor, told[vendor][0]!, { ref: 'ada' }, { [setting]: 'ref=fixed,plan=early' })
    const values = requests.flatMap(({ json }) => [...places(json)]).map(([value]) => value)
    assert.ok(values.includes('ada') && values.includes('early') && !values.includes('fixed'), vendor)
  }
})
