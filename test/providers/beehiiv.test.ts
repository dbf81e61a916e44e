import assert from 'node:assert/strict'
import { test } from 'node:test'
import { providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, taking, text, vendorApi, yesOrNo } from '../harness/vendor-api.ts'
import { ada, check, create, createAgain, never, remove, start, vendorTable, waitAfter } from './table.ts'

const KEY = 'beehiiv-key-of-the-test'
const PUBLICATION = 'pub_00000000-0000-0000-0000-000000000000'
const AUTOMATION = 'aut_00000000-0000-0000-0000-000000000000'
const tags = ['early access', 'friends']

const beehiivSettings = (url: string) => ({
  BEEHIIV_API_KEY: KEY,
  BEEHIIV_PUBLICATION_ID: PUBLICATION,
  BEEHIIV_AUTOMATION_ID: AUTOMATION,
  BEEHIIV_BASE_URL: url,
})

interface BeehiivFake extends VendorFake {
  /** As the owner made it. */
  readonly automation: { status: string; trigger_events: string[] }
}

interface Subscription {
  readonly id: string
  readonly email: string
  readonly created: number
  readonly [more: string]: unknown
  tags: readonly string[]
}

/*
 * Facts of the OpenAPI document 1.0.0 of https://developers.beehiiv.com, as it was in 2026-08, as far as we send or read it.
 * Its servers answer a creation with 201, where the document says 200.
 */
const creation = exactly({ email: text }, { send_welcome_email: yesOrNo })

const error = (status: number, statusText: string, message: string): Said => ({
  status,
  body: { status, statusText, errors: [{ message, code: statusText.toUpperCase() }] },
})
const notFound = error(404, 'not_found', 'Not found')

/** As documented at https://developers.beehiiv.com. A creation of an address that is there answers with what is there. */
function beehiivFake(): BeehiivFake {
  const { contacts, find, start, facts } = contactBook<Subscription>()
  const automation = { status: 'live', trigger_events: ['signup', 'api'] }

  function keep(email: string, more: object, created: Date): Subscription {
    const id = `sub_${String(contacts.size + 1).padStart(8, '0')}`
    const seconds = Math.floor(created.getTime() / 1_000)
    const kept = { id, email, status: 'validating', created: seconds, ...more, tags: [] }
    contacts.set(email, kept)
    return kept
  }

  /** With this status, if there is one. */
  const shown = (found: Subscription | undefined, status = 200): Said =>
    found === undefined ? notFound : { status, body: { data: found } }

  function create({ email, ...more }: Received['json']): Said {
    return contacts.has(email) ? shown(contacts.get(email)) : shown(keep(email, more, new Date()), 201)
  }

  function addTags(id: string, added: readonly string[]): Said {
    const found = find(each => each.id === id)
    if (found !== undefined) found.tags = [...new Set([...found.tags, ...added])]
    return shown(found)
  }

  function begin(journey: string, { email, subscription_id: id }: Received['json']): Said {
    const found = find(each => each.id === id || each.email === email)
    if (found === undefined || journey !== AUTOMATION) return notFound
    start(found.email)
    return { status: 200, body: { data: { id: 'aj_1', automation_id: AUTOMATION, status: 'in_progress' } } }
  }

  function remove(id: string): Said {
    const found = find(each => each.id === id)
    return found !== undefined && contacts.delete(found.email) ? { status: 204 } : notFound
  }

  return {
    ...facts,
    automation,
    answer: vendorApi({
      refuses({ headers, at }) {
        if (headers.authorization !== `Bearer ${KEY}`) return error(401, 'unauthorized', 'Invalid API key')
        return at.publication === PUBLICATION ? undefined : notFound
      },
      routes: {
        'GET /publications/{publication}': ({ at }) => ({ status: 200, body: { data: { id: at.publication } } }),
        'GET /publications/{publication}/subscriptions/by_email/{email}': ({ at }) => shown(contacts.get(at.email!)),
        'POST /publications/{publication}/subscriptions': taking(creation, ({ json }) => create(json)),
        'DELETE /publications/{publication}/subscriptions/{id}': ({ at }) => remove(at.id!),
        'POST /publications/{publication}/subscriptions/{id}/tags': taking(
          exactly({ tags: listOf(text) }),
          ({ at, json }) => addTags(at.id!, json.tags),
        ),
        'GET /publications/{publication}/automations/{id}': ({ at }) =>
          at.id === AUTOMATION ? { status: 200, body: { data: { id: at.id, ...automation } } } : notFound,
        'POST /publications/{publication}/automations/{id}/journeys': taking(
          exactly({}, { email: text, subscription_id: text }),
          ({ at, json }) => begin(at.id!, json),
        ),
      },
    }),
    had(email) {
      const fields = [{ name: 'City', value: 'Rome' }]
      keep(email, { status: 'inactive', custom_fields: fields }, new Date('2020-01-01'))
    },
    joined: email => tags.every(tag => contacts.get(email)?.tags.includes(tag)),
  }
}

const joining = { BEEHIIV_TAGS: tags.join(', ') }
const beehiiv = {
  vendor: 'beehiiv',
  settings: beehiivSettings,
  wrongKey: { BEEHIIV_API_KEY: 'another-key' },
  wrongSetting: { BEEHIIV_PUBLICATION_ID: 'pub_another' },
  fake: beehiivFake,
  joining: { settings: joining, members: ['tags'] },
  start: {
    path: /^\/publications\/[^/]+\/automations\/[^/]+\/journeys$/,
    done: { status: 200, body: { data: { id: 'aj_1', automation_id: 'aut_1', status: 'in_progress' } } },
  },
} as const
providerContract(beehiiv)

const { started, rows, answers, missing } = vendorTable(beehiiv)
const ID = 'sub_00000001'
const at = (path: string) => `/publications/${PUBLICATION}${path}`
const FIND = `GET ${at('/subscriptions/by_email/ada@example.com')}`
const CREATE = `POST ${at('/subscriptions')}`
const START = `POST ${at(`/automations/${AUTOMATION}/journeys`)}`
const reset = String(Math.floor(Date.now() / 1_000) + 300)

rows({
  'with no setting but the least the address alone is sent': {
    calls: [
      [create(), { is: 'created', providerId: ID }, FIND, [CREATE, { email: ada.email }]],
      [start({ ...ada, providerId: ID }), { is: 'delivered' }, [START, { subscription_id: ID }]],
      [start(), { is: 'delivered' }, [START, { email: ada.email }]],
      [createAgain(), { is: 'existing', providerId: ID, ours: true }, FIND],
      [remove(), { is: 'removed' }, FIND, `DELETE ${at(`/subscriptions/${ID}`)}`],
      [remove(), { is: 'absent' }, FIND, `GET ${at('')}`],
    ],
  },
  'with every setting the tags are in a call of their own': {
    set: { ...joining, BEEHIIV_SEND_WELCOME_EMAIL: 'true' },
    calls: [
      [
        create(),
        'created',
        FIND,
        [CREATE, { email: ada.email, send_welcome_email: true }],
        [`POST ${at(`/subscriptions/${ID}/tags`)}`, { tags }],
      ],
    ],
  },
  'in doubt, a subscription that is older than the signup is not ours, and keeps its tags': {
    set: joining,
    had: ada.email,
    calls: [[createAgain(), { is: 'existing', providerId: ID, ours: false }, FIND]],
  },
  'a 429 asks to wait until the limit is reset': {
    says: { status: 429, body: {}, headers: { 'ratelimit-remaining': '0', 'ratelimit-reset': reset } },
    calls: [[async provider => Number(await waitAfter(create())(provider)) > 20_000, true]],
  },
  'without an automation none is started': {
    set: { BEEHIIV_AUTOMATION_ID: '' },
    calls: [[async ({ automation }) => automation, null]],
  },
  'the check looks at the publication and the automation': {
    calls: [[check, null, `GET ${at('')}`, `GET ${at(`/automations/${AUTOMATION}`)}`]],
  },
})

missing([
  [{ BEEHIIV_PUBLICATION_ID: 'pub_another' }, /^look at the publication: answered with 404/],
  [{ BEEHIIV_AUTOMATION_ID: 'aut_another' }, /^look at the automation: answered with 404/],
])

// In doubt, a time that makes no sense tells nothing.
answers(
  'in doubt, a look-up',
  createAgain(),
  [undefined, null, '2025-07-18', 1e20].map(created => [
    { status: 200, body: { data: { id: ID, created } } },
    { is: 'existing', providerId: ID, ours: undefined },
  ]),
)
// No code of an error is documented, so none means the address.
answers(
  'a creation',
  create(),
  [
    error(400, 'EMAIL_INVALID', 'Email is invalid'),
    error(404, 'NOT_FOUND', 'Email is invalid'),
    error(422, 'EMAIL_INVALID', 'Email is invalid'),
  ].map(said => [said, 'misconfigured']),
  { to: 'POST' },
)
answers('a start', start(), [
  [{ status: 200, body: { data: {} } }, 'unclear'],
  [{ status: 200, body: '' }, 'unclear'],
])

for (const change of [{ status: 'draft' }, { trigger_events: ['signup'] }]) {
  test(`the check tells of an automation with ${JSON.stringify(change)}`, async t => {
    const { fake, provider } = await started(t)
    Object.assign(fake.automation, change)
    const failure = await provider.check(never)
    assert.ok(failure?.is === 'misconfigured' && /not live with the trigger "Add by API"/.test(failure.why))
  })
}
