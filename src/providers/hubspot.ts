import { idAt, judge, judgeDelivery, memberAt, textAt } from '../outbound/reply.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

const CONTACTS = '/crm/v3/objects/contacts'

/**
 * https://developers.hubspot.com/docs/api-reference, contacts and custom events (v3). A 409 means a known address; its
 * message contains the id. The property is set on creation, so that a workflow can enrol on it; the event has a UUID.
 */
export function hubspot(settings: SettingsOf<'hubspot'>, connect: Connect): VendorClient {
  const { HUBSPOT_PROPERTY: property, HUBSPOT_EVENT: eventName } = settings
  const { call } = connect({
    base: settings.HUBSPOT_BASE_URL,
    headers: { authorization: `Bearer ${settings.HUBSPOT_TOKEN}` },
  })

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email } = contact
      const { first, last } = splitName(name)
      const own = property && { [property.name]: property.value }
      const body = { properties: { ...own, email, firstname: first, lastname: last } }
      const reply = await call({ to: 'create a contact', method: 'POST', path: CONTACTS, body }, attempt)
      if (reply.is !== 'answered') return reply
      const id = idAt(reply.json, 'id')
      if (reply.status === 201 && id !== undefined) return { is: 'created', providerId: id }
      if (reply.status === 400 && refusesAddress(reply.json)) return { is: 'refused', reason: 'it is not valid there' }
      if (reply.status !== 409 || textAt(reply.json, 'category') !== 'CONFLICT') return judge(reply)
      const known = /Existing ID:\s*(\d+)/i.exec(textAt(reply.json, 'message') ?? '')?.[1]
      if (!doubt) return { is: 'existing', providerId: known }

      const path = `${CONTACTS}/${encodeURIComponent(known ?? email)}`
      const query = { properties: 'createdate', ...(known === undefined && { idProperty: 'email' }) }
      const found = await call({ to: 'get a contact', method: 'GET', path, query }, attempt)
      if (found.is !== 'answered') return found
      const providerId = idAt(found.json, 'id')
      const ours = isYoungerThanSignup(textAt(found.json, 'createdAt'), contact)
      if (found.status !== 200 || providerId === undefined || ours === undefined) return judge(found)
      return { is: 'existing', providerId, ours }
    },

    automation:
      eventName === undefined
        ? null
        : async ({ at, contact: { id, email, providerId } }, attempt) => {
            const whom = providerId === undefined ? { email } : { objectId: providerId }
            const body = { eventName, ...whom, occurredAt: at.toISOString(), properties: {}, uuid: id }
            const reply = await call({ to: 'send an event', method: 'POST', path: '/events/v3/send', body }, attempt)
            if (reply.is !== 'answered') return reply
            // 409: there is already an event with this UUID.
            return reply.status === 204 || reply.status === 409 ? { is: 'delivered' } : judgeDelivery(reply)
          },

    async check(attempt) {
      const query = { limit: '1', properties: 'createdate' }
      const reply = await call({ to: 'check the token', method: 'GET', path: CONTACTS, query }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && Array.isArray(memberAt(reply.json, 'results')) ? null : judge(reply)
    },
  }
}

/** The message has a JSON array of the invalid properties: `Property values were not valid: [{…}]`. */
function refusesAddress(json: unknown): boolean {
  const message = textAt(json, 'message') ?? ''
  try {
    const wrong: unknown = JSON.parse(message.slice(message.indexOf('[')))
    return (
      Array.isArray(wrong) &&
      wrong.some(each => memberAt(each, 'name') === 'email' && memberAt(each, 'error') === 'INVALID_EMAIL')
    )
  } catch {
    return false
  }
}
