import type { Attempt } from '../outbound/attempt.ts'
import type { Call } from '../outbound/caller.ts'
import { idAt, inDoubt, judge, judgeDelivery, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/** Every call names the API version that it was written for. */
const REVISION = '2026-07-15'
/** For adding to a list: 10 a second and 150 a minute. */
const LIST_RATE = { calls: 10, per: 4_000, connections: 5 }

/**
 * https://developers.klaviyo.com/en/reference/api_overview (JSON:API). A 409 means a known address and contains its id. A
 * second step adds the profile to the list, without consent: subscribing would undo earlier unsubscriptions.
 */
export function klaviyo(settings: SettingsOf<'klaviyo'>, connect: Connect): VendorClient {
  const { KLAVIYO_LIST_ID: list } = settings
  const account = {
    base: `${settings.KLAVIYO_BASE_URL}/api`,
    headers: {
      authorization: `Klaviyo-API-Key ${settings.KLAVIYO_API_KEY}`,
      revision: REVISION,
      accept: 'application/vnd.api+json',
    },
  }
  const { call } = connect(account)
  const lists = list === undefined ? null : connect({ ...account, rate: LIST_RATE })

  const post = (to: string, path: string, data: unknown): Call => {
    const headers = { 'content-type': 'application/vnd.api+json' }
    return { to, method: 'POST', path, headers, body: { data } }
  }

  /** The last step, harmless when repeated. The profile exists by then, so a failure leaves doubt. */
  async function onList(creation: Creation, id: string, attempt: Attempt): Promise<Creation> {
    if (lists === null || list === undefined) return creation
    const path = `/lists/${encodeURIComponent(list)}/relationships/profiles`
    const reply = await lists.call(post('add to the list', path, [{ type: 'profile', id }]), attempt)
    if (reply.is === 'answered' && reply.status === 204) return creation
    return inDoubt(reply.is === 'answered' ? judge(reply) : reply)
  }

  /** For an existing profile: in doubt, checks whether it is ours, and then completes it. */
  async function existing(contact: Contact, id: string, attempt: Attempt): Promise<Creation> {
    const query = { 'fields[profile]': 'created' }
    const path = `/profiles/${encodeURIComponent(id)}`
    const reply = await call({ to: 'get a profile', method: 'GET', path, query }, attempt)
    if (reply.is !== 'answered') return reply
    const ours = isYoungerThanSignup(textAt(reply.json, 'data', 'attributes', 'created'), contact)
    if (reply.status !== 200 || ours === undefined) return judge(reply)
    const creation = { is: 'existing', providerId: id, ours } as const
    return ours ? onList(creation, id, attempt) : creation
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { first, last } = splitName(contact.name)
      const attributes = { email: contact.email, first_name: first, last_name: last }
      const reply = await call(post('create a profile', '/profiles', { type: 'profile', attributes }), attempt)
      if (reply.is !== 'answered') return reply
      const id = idAt(reply.json, 'data', 'id')
      if (reply.status === 201 && id !== undefined) return onList({ is: 'created', providerId: id }, id, attempt)
      if (refusesAddress(reply)) return { is: 'refused', reason: 'it is not valid there' }
      const known = idAt(reply.json, 'errors', 0, 'meta', 'duplicate_profile_id')
      if (reply.status !== 409) return judge(reply)
      // The status is enough; the id is sent, but not documented.
      if (known === undefined) return doubt ? judge(reply) : { is: 'existing' }
      return doubt ? existing(contact, known, attempt) : { is: 'existing', providerId: known }
    },

    async automation({ id, name, contact: { email, providerId } }, attempt) {
      const attributes = {
        properties: {},
        metric: { data: { type: 'metric', attributes: { name } } },
        // With an id, an address would be written into the profile.
        profile: {
          data: { type: 'profile', ...(providerId ? { id: providerId, attributes: {} } : { attributes: { email } }) },
        },
        unique_id: id,
      }
      const reply = await call(post('create an event', '/events', { type: 'event', attributes }), attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 202 ? { is: 'delivered' } : judgeDelivery(reply)
    },

    async check(attempt): Promise<Failure | null> {
      const query = { 'fields[profile]': 'created', 'page[size]': '1' }
      const reply = await call({ to: 'check the API key', method: 'GET', path: '/profiles', query }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && Array.isArray(memberAt(reply.json, 'data')) ? null : judge(reply)
    },
  }
}

/** An error points to the member that it is about. */
function refusesAddress({ status, json }: Reply): boolean {
  const errors = memberAt(json, 'errors')
  const isAboutAddress = (error: unknown) => textAt(error, 'source', 'pointer') === '/data/attributes/email'
  return status === 400 && Array.isArray(errors) && errors.some(isAboutAddress)
}
