import {
  address,
  assignments,
  number,
  oneOf,
  optional,
  required,
  type ValuesOf,
  withDefault,
  word,
} from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import type { Call } from '../outbound/caller.ts'
import { idAt, memberAt, type Refused, textAt } from '../outbound/reply.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import type { Contact, EventKind, WaitlistEvent } from '../waitlist/rules/contact.ts'
import { ALWAYS, type Connect, DAY, type Vendor, type VendorCaller, type VendorClient } from './vendor.ts'
import { type Answer, misconfigured, splitName } from './vendor-client.ts'

const settings = {
  CUSTOMERIO_API: withDefault(
    oneOf('track', 'pipelines'),
    'track',
    'API that people and events are sent to.',
    'Your choice; Customer.io recommends pipelines for what is new.',
  ),
  CUSTOMERIO_SITE_ID: optional(
    word,
    'Site id; the Track API needs it.',
    'Customer.io: Settings, API credentials, Track API keys.',
  ),
  CUSTOMERIO_API_KEY: required(
    word,
    'Key of the Track API, or of the source that the Pipelines API writes to.',
    'Customer.io: Settings, API credentials, Track API keys; or Integrations, Customer.io API or HTTP, Settings.',
  ),
  CUSTOMERIO_APP_KEY: optional(
    word,
    'Key of the App API, to look an address up first; without it every address is new there.',
    'Customer.io: Settings, API credentials, App API keys.',
  ),
  CUSTOMERIO_ATTRIBUTES: {
    ...optional(assignments, 'Attributes of a new person, as name=value.'),
    needs: 'CUSTOMERIO_APP_KEY',
  },
  CUSTOMERIO_SEGMENT_ID: {
    ...optional(
      number,
      'Manual segment to add the person to, by the Track API.',
      'Customer.io: Segments, the segment, Usage.',
    ),
    needs: 'CUSTOMERIO_APP_KEY',
  },
  CUSTOMERIO_BASE_URL: optional(
    address,
    'Address of the API, instead of https://track.customer.io or https://cdp.customer.io.',
    'https://track-eu.customer.io or https://cdp-eu.customer.io for an account in the EU.',
  ),
  CUSTOMERIO_APP_BASE_URL: {
    ...withDefault(
      address,
      'https://api.customer.io',
      'Address of the App API.',
      'https://api-eu.customer.io for an account in the EU.',
    ),
    needs: 'CUSTOMERIO_APP_KEY',
  },
}
type Settings = ValuesOf<typeof settings>

export const customerio: Vendor<typeof settings> = {
  title: 'Customer.io',
  settings,
  // The App API, which is called first, allows 10 calls a second.
  rate: { calls: 100, per: 1_000, connections: 10 },
  // With a key for the App API; without it every address is new. The Pipelines API recognises a repetition for a day.
  promises: {
    newness: 'best effort',
    scope: 'account',
    recognisesOwn: true,
    repeatable: ALWAYS,
    namesEvents: true,
    removal: 'later',
  },
  joins: ['CUSTOMERIO_SEGMENT_ID'],
  contradiction({
    CUSTOMERIO_API: api,
    CUSTOMERIO_SITE_ID: site,
    CUSTOMERIO_SEGMENT_ID: segment,
    CUSTOMERIO_ATTRIBUTES: attributes,
  }) {
    if (api === 'track' && site === undefined) {
      return 'CUSTOMERIO_SITE_ID is missing: the Track API needs it; the Pipelines API (CUSTOMERIO_API=pipelines) does not'
    }
    if (api === 'pipelines' && site !== undefined) {
      return 'CUSTOMERIO_SITE_ID is of the Track API: the Pipelines API takes CUSTOMERIO_API_KEY alone, the key of a source'
    }
    if (api === 'pipelines' && segment !== undefined) {
      return 'CUSTOMERIO_SEGMENT_ID needs CUSTOMERIO_API=track: the Pipelines API cannot add to a segment'
    }
    const taken = ['id', 'cio_id', 'email', 'first_name', 'last_name', 'created_at']
    const twice = taken.find(name => Object.hasOwn(attributes ?? {}, name))
    return twice === undefined ? null : `CUSTOMERIO_ATTRIBUTES must be attributes of your own: ${twice} is taken`
  },
  client,
}

/** Of the App API; the vendor's rate is that of the others. */
const APP_RATE = { calls: 10, per: 1_000, connections: 5 }

/** How a person and an event are sent to an API, which answers with a 2xx whose body says nothing. */
interface Wire {
  readonly base: string
  headers(settings: Settings): Readonly<Record<string, string>>
  /** Sets these attributes, whether the person is new or not. */
  person(email: string, attributes: object): Pick<Call, 'method' | 'path' | 'body'>
  event(event: WaitlistEvent): Pick<Call, 'method' | 'path' | 'body'>
  /** Says the same whether there is such a person or not. */
  deletion(email: string): Pick<Call, 'method' | 'path' | 'body'>
  /** Tries the key and changes nothing. */
  readonly trial: Call
  isGood(reply: Answer): boolean
  /** As in `VendorClient`. */
  readonly repeatable?: number
}

/** https://docs.customer.io/integrations/api/track */
const track: Wire = {
  base: 'https://track.customer.io',
  headers: ({ CUSTOMERIO_SITE_ID: site, CUSTOMERIO_API_KEY: key }) => basic(`${site}:${key}`),
  person: (email, attributes) => ({ method: 'PUT', path: personOf(email), body: { email, ...attributes } }),
  event: ({ name, kind, contact, code }) => ({
    method: 'POST',
    path: `${personOf(contact.email)}/events`,
    // Without a timestamp, since events older than 72 hours start no campaign.
    body: { name, id: ulidOf(contact.id, kind), data: { name: contact.name, ...contact.source, code } },
  }),
  deletion: email => ({ method: 'DELETE', path: personOf(email) }),
  trial: { to: 'check the Track API key', method: 'GET', path: '/api/v1/accounts/region' },
  isGood: ({ status, json }) => status === 200 && textAt(json, 'region') !== undefined,
}

/** https://docs.customer.io/integrations/api/cdp. A user id that is an address identifies a person by it. */
const pipelines: Wire = {
  base: 'https://cdp.customer.io',
  // Without the strict mode even a wrong key is answered with 200.
  headers: ({ CUSTOMERIO_API_KEY: key }) => ({ ...basic(`${key}:`), 'x-strict-mode': '1' }),
  person: (email, attributes) => ({
    method: 'POST',
    path: '/v1/identify',
    body: { userId: email, traits: { email, ...attributes } },
  }),
  event: ({ name, kind, contact, code }) => ({
    method: 'POST',
    path: '/v1/track',
    body: {
      userId: contact.email,
      event: name,
      // Becomes the id of the event in the Track API, which wants a ULID.
      messageId: ulidOf(contact.id, kind),
      properties: { name: contact.name, ...contact.source, code },
    },
  }),
  deletion: email => ({ method: 'POST', path: '/v1/track', body: { userId: email, event: 'User Deleted' } }),
  // There is nothing to get. A message about nobody is refused by the strict mode, unless the key is refused first.
  trial: { to: 'check the Pipelines API key', method: 'POST', safe: true, path: '/v1/identify', body: {} },
  isGood: ({ status }) => status === 400,
  // It is not documented for how long messages are told apart.
  repeatable: DAY,
}

/**
 * Neither API says whether somebody is new, so the App API (https://docs.customer.io/integrations/api/app) is called first.
 * Without its key only the address is sent, which changes no existing person, and everybody is new.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const wire = { track, pipelines }[settings.CUSTOMERIO_API]
  const { call } = connect({ base: settings.CUSTOMERIO_BASE_URL ?? wire.base, headers: wire.headers(settings) })
  const app =
    settings.CUSTOMERIO_APP_KEY === undefined
      ? null
      : connect({
          base: settings.CUSTOMERIO_APP_BASE_URL,
          headers: { authorization: `Bearer ${settings.CUSTOMERIO_APP_KEY}` },
          rate: APP_RATE,
        })
  const segment = app === null ? undefined : settings.CUSTOMERIO_SEGMENT_ID

  const lookup = (email: string): Call => {
    return { to: 'find a person', method: 'GET', path: '/v1/customers', query: { email } }
  }

  /** The id of the person with this address; null: there is none. */
  async function find(email: string, { call }: VendorCaller, attempt: Attempt): Promise<string | null | Failure> {
    const reply = await call(lookup(email), attempt)
    const people = reply.list('results')
    if (people === undefined) return reply.failure
    return people.length === 0 ? null : (idAt(people, 0, 'cio_id') ?? reply.failure)
  }

  /** Null if nobody has this address. */
  async function existing(contact: Contact, doubt: boolean, app: VendorCaller, attempt: Attempt) {
    const providerId = await find(contact.email, app, attempt)
    if (typeof providerId !== 'string') return providerId
    if (!doubt) return { is: 'existing', providerId } as const

    const path = `/v1/customers/${encodeURIComponent(providerId)}/attributes`
    const found = await app.get('get the attributes of a person', path, attempt, { id_type: 'cio_id' })
    const attributes = found.at('customer', 'attributes')
    if (found.status !== 200 || attributes === undefined) return found.failure
    // Ours has the time of its signup, in seconds. Attributes are documented as text.
    return {
      is: 'existing',
      providerId,
      ours: Number(memberAt(attributes, 'created_at')) === secondOf(contact),
    } as const
  }

  async function create(contact: Contact, attempt: Attempt): Promise<Creation> {
    const { first, last } = splitName(contact.name)
    const attributes = app && {
      first_name: first,
      last_name: last,
      created_at: secondOf(contact),
      ...settings.CUSTOMERIO_ATTRIBUTES,
      ...contact.source,
    }
    const reply = await call(
      { to: 'add a person', statusAlone: true, ...wire.person(contact.email, { ...attributes }) },
      attempt,
    )
    return reply.ok ? { is: 'created' } : reply.failure
  }

  async function join({ email }: Contact, attempt: Attempt): Promise<Failure | Refused | null> {
    const path = `/api/v1/segments/${segment}/add_customers`
    const [query, body] = [{ id_type: 'email' }, { ids: [email] }]
    const to = `add to the segment ${segment}`
    const reply = await call({ to, method: 'POST', path, query, body, statusAlone: true }, attempt)
    return reply.ok ? null : reply.refusal
  }

  return {
    async createContact(contact, doubt, attempt) {
      const known = app && (await existing(contact, doubt, app, attempt))
      return known ?? create(contact, attempt)
    },

    join: segment === undefined ? undefined : join,
    joinsLast: true,

    async automation(event, attempt) {
      const reply = await call({ to: 'send an event', statusAlone: true, ...wire.event(event) }, attempt)
      return reply.deliveredIf(reply.ok)
    },
    ...(wire.repeatable !== undefined && { repeatable: wire.repeatable }),

    async remove(email, attempt) {
      const found = app && (await find(email, app, attempt))
      if (app !== null && found === null) return { is: 'absent' }
      if (found !== null && typeof found !== 'string') return found
      const reply = await call({ to: 'delete a person', statusAlone: true, ...wire.deletion(email) }, attempt)
      return reply.removedIf(reply.ok)
    },

    async check(attempt) {
      const reply = await call(wire.trial, attempt)
      if (!wire.isGood(reply)) return reply.failure
      if (app === null) return null
      const found = await app.call(lookup('nobody@example.com'), attempt)
      if (found.list('results') === undefined) return found.failure
      if (segment === undefined) return null
      const seen = await app.get(`look for the segment ${segment}`, `/v1/segments/${segment}`, attempt)
      const type = seen.text('segment', 'type')
      if (seen.status !== 200 || type === undefined) return seen.failure
      return type === 'manual' ? null : misconfigured(`look for the segment ${segment}: it is not a manual one`)
    },
  }
}

const basic = (credentials: string) => ({ authorization: `Basic ${Buffer.from(credentials).toString('base64')}` })

const personOf = (email: string): string => `/api/v1/customers/${encodeURIComponent(email)}`

const secondOf = ({ createdAt }: Contact): number => Math.floor(createdAt.getTime() / 1_000)

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A UUIDv7 as a ULID: both are 128 bits that begin with a 48-bit time. https://github.com/ulid/spec */
function ulidOf(uuid: string, kind: EventKind): string {
  let bits = BigInt(`0x${uuid.replaceAll('-', '')}`)
  // A contact's id is of version 7 (RFC 9562), so no other event has that of an invitation, which is made of version 8.
  if (kind === 'invited') bits ^= 0xfn << 76n
  let text = ''
  for (let i = 0; i < 26; i++) {
    text = CROCKFORD[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text
}
