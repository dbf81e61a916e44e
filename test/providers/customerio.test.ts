import assert from 'node:assert/strict'
import { test } from 'node:test'
import { within } from '../contracts/provider.sources.ts'
import { contactOf, eventOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable } from './table.ts'

const SITE_ID = 'site-id-of-the-test'
const API_KEY = 'customerio-track-key'

const customerioSettings = (url: string) => ({
  CUSTOMERIO_SITE_ID: SITE_ID,
  CUSTOMERIO_API_KEY: API_KEY,
  CUSTOMERIO_BASE_URL: url,
})

const isUlid = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
const done: Said = { status: 200, body: {} }

/**
 * As documented at https://docs.customer.io/integrations/api/track: identifying somebody says the same whether they are new or
 * not and sets what is sent; an event with the ULID of an earlier one is ignored.
 */
function customerioFake(): VendorFake {
  const { contacts: people, start, facts } = contactBook<Record<string, unknown>>()
  const seen = new Set<string>()
  const authorization = `Basic ${Buffer.from(`${SITE_ID}:${API_KEY}`).toString('base64')}`

  function identify(email: string, attributes: object): Said {
    const known = people.get(email) ?? { cio_id: `a3${String(people.size + 1).padStart(6, '0')}` }
    people.set(email, { ...known, email, ...attributes })
    return done
  }

  function track(email: string, { id = '' }: { readonly id?: string }): Said {
    if (!isUlid.test(id) || !seen.has(id)) start(email)
    seen.add(id)
    return done
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers.authorization === authorization
          ? undefined
          : { status: 401, body: { meta: { error: 'Unauthorized' } } },
      routes: {
        'PUT /api/v1/customers/{identifier}': ({ at, json }) => identify(at.identifier!, json),
        // What is not there is deleted just as well.
        'DELETE /api/v1/customers/{identifier}': ({ at }) => {
          people.delete(at.identifier!)
          return done
        },
        'POST /api/v1/customers/{identifier}/events': ({ at, json }) => track(at.identifier!, json),
        'GET /api/v1/accounts/region': () => ({ status: 200, body: { region: 'us' } }),
      },
    }),
    had: email => void identify(email, { first_name: 'Old', created_at: 1_577_836_800 }),
  }
}

const customerio = {
  vendor: 'customerio',
  settings: customerioSettings,
  wrongKey: { CUSTOMERIO_API_KEY: 'another-key' },
  fake: customerioFake,
  tellsId: false,
  statusAlone: true,
  sources: { event: within('data') },
  start: {
    path: /^\/api\/v1\/customers\/[^/]+\/events$/,
    done: { status: 200, body: {} },
    statusAlone: true,
    id: ({ json }: Received) => json.id,
  },
} as const
providerContract(customerio)

const { rows, answers, sameRequests, missing } = vendorTable(customerio)
const odd = contactOf('a%41?b#c&d+e@example.com')
const ULID = '01K0EMYF00FH79T2HZ3GNMTQKF'
const data = { name: 'Ada King Lovelace' }

sameRequests('of the Track API', {
  ours: [
    [check, null],
    [create(), 'created'],
    [createAgain(), 'created'],
    [start(), 'delivered'],
    [remove(), 'removed'],
    [remove(), 'removed'],
  ],
  headers: ['authorization'],
})

rows({
  'any address may be in a path': {
    calls: [
      [create(odd), 'created', `PUT /api/v1/customers/${odd.email}`],
      [start(odd), 'delivered', `POST /api/v1/customers/${odd.email}/events`],
    ],
  },
  'an event has no time of its own: an old one would start no campaign': {
    calls: [
      [
        ({ automation }) => automation!.deliver({ ...eventOf(ada), at: new Date('2020-01-01') }, never),
        'delivered',
        [`POST /api/v1/customers/${ada.email}/events`, { name: 'waitlist.joined', id: ULID, data }],
      ],
    ],
  },
})

missing([[{ CUSTOMERIO_SITE_ID: 'another-site' }, /Track API/]])

const good = [{ status: 200, body: '' }, { status: 200, body: { success: true } }, { status: 204 }]
const refused = { status: 400, body: { meta: { errors: ['Something.'] } } }
answers('a person', create(), [...good.map(said => [said, 'created'] as const), [refused, 'misconfigured']])
answers('an event', start(), [...good.map(said => [said, 'delivered'] as const), [refused, 'refused']])

test('the id of an event is a ULID of the same 128 bits, and tells the time of the signup', () => {
  const bits = [...ULID].reduce((all, one) => all * 32n + BigInt('0123456789ABCDEFGHJKMNPQRSTVWXYZ'.indexOf(one)), 0n)
  assert.equal(bits.toString(16).padStart(32, '0'), ada.id.replaceAll('-', ''))
})
