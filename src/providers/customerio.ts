import type { Attempt } from '../outbound/attempt.ts'
import type { Call, Caller } from '../outbound/caller.ts'
import { idAt, judge, judgeDelivery, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, splitName, type VendorClient } from './vendor-client.ts'

/** The rate of the App API; the catalogue has that of the Track API. */
const APP_RATE = { calls: 10, per: 1_000, connections: 5 }

/**
 * https://docs.customer.io/integrations/api/track and /app. The Track API never says whether somebody is new, so the App
 * API is called first. Without its key only the address is sent, which changes no existing person, and everybody is new.
 */
export function customerio(settings: SettingsOf<'customerio'>, connect: Connect): VendorClient {
  const credentials = Buffer.from(`${settings.CUSTOMERIO_SITE_ID}:${settings.CUSTOMERIO_API_KEY}`).toString('base64')
  const track = connect({
    base: settings.CUSTOMERIO_BASE_URL,
    headers: { authorization: `Basic ${credentials}` },
  })
  const app =
    settings.CUSTOMERIO_APP_KEY === undefined
      ? null
      : connect({
          base: settings.CUSTOMERIO_APP_BASE_URL,
          headers: { authorization: `Bearer ${settings.CUSTOMERIO_APP_KEY}` },
          rate: APP_RATE,
        })

  const pathOf = (email: string) => `/api/v1/customers/${encodeURIComponent(email)}`
  const lookup = (email: string): Call => {
    return { to: 'find a person', method: 'GET', path: '/v1/customers', query: { email } }
  }

  /** Null if nobody has this address. */
  async function existing(contact: Contact, doubt: boolean, { call }: Caller, attempt: Attempt) {
    const reply = await call(lookup(contact.email), attempt)
    if (reply.is !== 'answered') return reply
    const people = memberAt(reply.json, 'results')
    if (reply.status !== 200 || !Array.isArray(people)) return judge(reply)
    if (people.length === 0) return null
    const providerId = idAt(people, 0, 'cio_id')
    if (providerId === undefined) return judge(reply)
    if (!doubt) return { is: 'existing', providerId } as const

    const path = `/v1/customers/${encodeURIComponent(providerId)}/attributes`
    const query = { id_type: 'cio_id' }
    const found = await call({ to: 'get the attributes of a person', method: 'GET', path, query }, attempt)
    if (found.is !== 'answered') return found
    const attributes = memberAt(found.json, 'customer', 'attributes')
    if (found.status !== 200 || attributes === undefined) return judge(found)
    // Ours has the time of its signup, in seconds. Attributes are documented as text.
    return {
      is: 'existing',
      providerId,
      ours: Number(memberAt(attributes, 'created_at')) === secondOf(contact),
    } as const
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email } = contact
      const known = app && (await existing(contact, doubt, app, attempt))
      if (known !== null) return known
      const { first, last } = splitName(name)
      const rest = app && { first_name: first, last_name: last, created_at: secondOf(contact) }
      const body = { email, ...rest }
      const reply = await track.call({ to: 'add a person', method: 'PUT', path: pathOf(email), body }, attempt)
      if (reply.is !== 'answered') return reply
      return isDone(reply) ? { is: 'created' } : judge(reply)
    },

    async automation({ name, contact }, attempt) {
      // Without a timestamp, since events older than 72 hours start no campaign.
      const body = { name, id: ulidOf(contact.id), data: { name: contact.name } }
      const path = `${pathOf(contact.email)}/events`
      const reply = await track.call({ to: 'send an event', method: 'POST', path, body }, attempt)
      if (reply.is !== 'answered') return reply
      return isDone(reply) ? { is: 'delivered' } : judgeDelivery(reply)
    },

    async check(attempt) {
      const path = '/api/v1/accounts/region'
      const reply = await track.call({ to: 'check the Track API key', method: 'GET', path }, attempt)
      if (reply.is !== 'answered') return reply
      if (reply.status !== 200 || textAt(reply.json, 'region') === undefined) return judge(reply)
      const found = await app?.call(lookup('nobody@example.com'), attempt)
      if (found === undefined || found.is !== 'answered') return found ?? null
      return found.status === 200 && Array.isArray(memberAt(found.json, 'results')) ? null : judge(found)
    },
  }
}

const secondOf = ({ createdAt }: Contact): number => Math.floor(createdAt.getTime() / 1_000)

/** Success is an empty object. */
const isDone = ({ status, json }: Reply): boolean =>
  status === 200 && typeof json === 'object' && json !== null && Object.keys(json).length === 0

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A UUIDv7 as a ULID: both are 128 bits that begin with a 48-bit time. https://github.com/ulid/spec */
function ulidOf(uuid: string): string {
  let bits = BigInt(`0x${uuid.replaceAll('-', '')}`)
  let text = ''
  for (let i = 0; i < 26; i++) {
    text = CROCKFORD[Number(bits & 31n)] + text
    bits >>= 5n
  }
  return text
}
