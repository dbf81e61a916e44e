import { address, required, type ValuesOf, withDefault, word } from '../config/kinds.ts'
import type { EventKind } from '../signup/contact.ts'
import { ALWAYS, type Connect, type Vendor, type VendorClient } from './vendor.ts'

const settings = {
  CUSTOMERIO_SITE_ID: required(word, 'Site id.', 'Customer.io: Settings, API credentials, Track API keys.'),
  CUSTOMERIO_API_KEY: required(
    word,
    'Key of the Track API.',
    'Customer.io: Settings, API credentials, Track API keys.',
  ),
  CUSTOMERIO_BASE_URL: withDefault(
    address,
    'https://track.customer.io',
    'Address of the API.',
    'https://track-eu.customer.io for an account in the EU.',
  ),
}
type Settings = ValuesOf<typeof settings>

export const customerio: Vendor<typeof settings> = {
  title: 'Customer.io',
  settings,
  rate: { calls: 100, per: 1_000, connections: 10 },
  promises: {
    newness: 'none',
    scope: 'account',
    recognisesOwn: false,
    repeatable: ALWAYS,
    namesEvents: true,
    removal: 'later',
  },
  client,
}

/**
 * https://docs.customer.io/integrations/api/track: a 2xx says all, and the same whether somebody is new or not. So the address
 * alone is sent, which changes nobody who exists, and the name goes with the event.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { CUSTOMERIO_SITE_ID: site, CUSTOMERIO_API_KEY: key } = settings
  const { call, get } = connect({
    base: settings.CUSTOMERIO_BASE_URL,
    headers: { authorization: `Basic ${Buffer.from(`${site}:${key}`).toString('base64')}` },
  })
  const personOf = (email: string) => `/api/v1/customers/${encodeURIComponent(email)}`

  return {
    async createContact({ email }, _doubt, attempt) {
      const put = { to: 'add a person', method: 'PUT', path: personOf(email), body: { email } } as const
      const reply = await call({ ...put, statusAlone: true }, attempt)
      return reply.ok ? { is: 'created' } : reply.failure
    },

    async automation({ name, kind, contact, code }, attempt) {
      // Without a timestamp, since events older than 72 hours start no campaign.
      const body = { name, id: ulidOf(contact.id, kind), data: { name: contact.name, ...contact.source, code } }
      const post = { to: 'send an event', method: 'POST', path: `${personOf(contact.email)}/events`, body } as const
      const reply = await call({ ...post, statusAlone: true }, attempt)
      return reply.deliveredIf(reply.ok)
    },

    async remove(email, attempt) {
      const to = 'delete a person'
      const reply = await call({ to, method: 'DELETE', path: personOf(email), statusAlone: true }, attempt)
      return reply.removedIf(reply.ok)
    },

    async check(attempt) {
      const reply = await get('check the Track API key', '/api/v1/accounts/region', attempt)
      return reply.status === 200 && reply.text('region') !== undefined ? null : reply.failure
    },
  }
}

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
