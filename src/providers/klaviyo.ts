import type { Call } from '../outbound/caller.ts'
import { idAt, judge, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/** Every call names the version of the API that it was written for. */
const REVISION = '2026-07-15'
/** Members of a list: 10 a second and 150 a minute. */
const LIST_RATE = { calls: 10, per: 4_000, connections: 5 }

/**
 * https://developers.klaviyo.com/en/reference/api_overview (JSON:API). 409 tells a known address and its id. A profile
 * is added to the list in a second step, which is no consent: subscribing would lift earlier unsubscriptions.
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

  /** The last step, harmless when repeated. The profile is there in any case, so a failure leaves doubt. */
  async function onList(creation: Creation, id: string, deadline: AbortSignal): Promise<Creation> {
    if (lists === null || list === undefined) return creation
    const path = `/lists/${encodeURIComponent(list)}/relationships/profiles`
    const reply = await lists.call(post('add to the list', path, [{ type: 'profile', id }]), deadline)
    if (reply.is === 'answered' && reply.status === 204) return creation
    return { ...(reply.is === 'answered' ? judge(reply) : reply), is: 'unclear' }
  }

  /** Of a profile that is there, when there is doubt: whether it is ours; then it is completed. */
  async function existing(contact: Contact, id: string, deadline: AbortSignal): Promise<Creation> {
    const query = { 'fields[profile]': 'created' }
    const path = `/profiles/${encodeURIComponent(id)}`
    const reply = await call({ to: 'get a profile', method: 'GET', path, query }, deadline)
    if (reply.is !== 'answered') return reply
    const ours = isYoungerThanSignup(textAt(reply.json, 'data', 'attributes', 'created'), contact)
    if (reply.status !== 200 || ours === undefined) return judge(reply)
    const creation = { is: 'existing', providerId: id, ours } as const
    return ours ? onList(creation, id, deadline) : creation
  }

  return {
    async createContact(contact, doubt, deadline) {
      const { first, last } = splitName(contact.name)
      const attributes = { email: contact.email, first_name: first, last_name: last }
      const reply = await call(post('create a profile', '/profiles', { type: 'profile', attributes }), deadline)
      if (reply.is !== 'answered') return reply
      const id = idAt(reply.json, 'data', 'id')
      if (reply.status === 201 && id !== undefined) return onList({ is: 'created', providerId: id }, id, deadline)
      if (refusesAddress(reply)) return { is: 'refused', reason: 'it is not valid there' }
      const known = idAt(reply.json, 'errors', 0, 'meta', 'duplicate_profile_id')
      if (reply.status !== 409) return judge(reply)
      // The status says enough; the id is told by the vendor, but not documented.
      if (known === undefined) return doubt ? judge(reply) : { is: 'existing' }
      return doubt ? existing(contact, known, deadline) : { is: 'existing', providerId: known }
    },

    async automation({ id, name, contact: { email, providerId } }, deadline) {
      const attributes = {
        properties: {},
        metric: { data: { type: 'metric', attributes: { name } } },
        // An address beside the id would be written into the profile.
        profile: {
          data: { type: 'profile', ...(providerId ? { id: providerId, attributes: {} } : { attributes: { email } }) },
        },
        unique_id: id,
      }
      const reply = await call(post('create an event', '/events', { type: 'event', attributes }), deadline)
      if (reply.is !== 'answered') return reply
      return reply.status === 202 ? { is: 'delivered' } : judge(reply)
    },

    async check(deadline): Promise<Failure | null> {
      const query = { 'fields[profile]': 'created', 'page[size]': '1' }
      const reply = await call({ to: 'check the API key', method: 'GET', path: '/profiles', query }, deadline)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && Array.isArray(memberAt(reply.json, 'data')) ? null : judge(reply)
    },
  }
}

/** An error points at the member that it is about. */
function refusesAddress({ status, json }: Reply): boolean {
  const errors = memberAt(json, 'errors')
  const isAboutAddress = (error: unknown) => textAt(error, 'source', 'pointer') === '/data/attributes/email'
  return status === 400 && Array.isArray(errors) && errors.some(isAboutAddress)
}
