import { idAt, judge, judgeDelivery, memberAt, textAt } from '../outbound/reply.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/**
 * https://developers.brevo.com/reference: without `updateEnabled` a known address is refused, and nothing about it
 * changes, not even its lists. Attributes that the account does not have are ignored. There is no check, since the call
 * for it is limited to a hundred an hour (https://developers.brevo.com/docs/api-limits).
 */
export function brevo(settings: SettingsOf<'brevo'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.BREVO_BASE_URL,
    headers: { 'api-key': settings.BREVO_API_KEY },
    waitFields: ['x-sib-ratelimit-reset', 'retry-after'],
  })
  const { BREVO_FIRST_NAME_ATTRIBUTE: firstName, BREVO_LAST_NAME_ATTRIBUTE: lastName } = settings

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email } = contact
      const { first, last } = splitName(name)
      const attributes = { [firstName]: first, ...(last !== undefined && { [lastName]: last }) }
      const body = { email, attributes, listIds: settings.BREVO_LIST_IDS, updateEnabled: false }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/v3/contacts', body }, attempt)
      if (reply.is !== 'answered') return reply
      const { status, json } = reply
      const id = idAt(json, 'id')
      if (status === 201 && id !== undefined) return { is: 'created', providerId: id }
      const code = memberAt(json, 'code')
      // The metadata is newer than the code, and has been seen with a different one.
      const isKnown =
        code === 'duplicate_parameter' || memberAt(json, 'metadata', 'duplicate_identifiers') !== undefined
      if (status !== 400 || !isKnown) {
        if (status === 400 && code === 'invalid_parameter' && /\be-?mail\b/i.test(textAt(json, 'message') ?? '')) {
          return { is: 'refused', reason: 'it is not valid there' }
        }
        return judge(reply)
      }
      if (!doubt) return { is: 'existing' }

      const path = `/v3/contacts/${encodeURIComponent(email)}`
      const found = await call({ to: 'find a contact', method: 'GET', path }, attempt)
      if (found.is !== 'answered') return found
      const providerId = idAt(found.json, 'id')
      if (found.status !== 200 || providerId === undefined) return judge(found)
      const ours = isYoungerThanSignup(textAt(found.json, 'createdAt'), contact)
      return { is: 'existing', providerId, ours }
    },

    async automation({ name, contact: { email, providerId } }, attempt) {
      const body = {
        // Letters, digits, - and _ are allowed.
        event_name: name.replaceAll(/[^A-Za-z0-9_-]/g, '_'),
        // By its address, a contact that was deleted meanwhile would be created anew; not so by its id.
        identifiers: providerId === undefined ? { email_id: email } : { contact_id: Number(providerId) },
      }
      const reply = await call({ to: 'send an event', method: 'POST', path: '/v3/events', body }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status < 300 ? { is: 'delivered' } : judgeDelivery(reply)
    },
  }
}
