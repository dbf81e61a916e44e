import { idAt, judge, memberAt, textAt } from '../outbound/reply.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/**
 * https://developers.brevo.com/reference: without `updateEnabled` a known address is refused, and nothing of it changes,
 * its lists neither. Attributes that the account does not have are ignored. There is no check: what would tell a good key
 * may be called a hundred times an hour (https://developers.brevo.com/docs/api-limits).
 */
export function brevo(settings: SettingsOf<'brevo'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.BREVO_BASE_URL,
    headers: { 'api-key': settings.BREVO_API_KEY },
    waitFields: ['x-sib-ratelimit-reset', 'retry-after'],
  })
  const { BREVO_FIRST_NAME_ATTRIBUTE: firstName, BREVO_LAST_NAME_ATTRIBUTE: lastName } = settings

  return {
    async createContact(contact, doubt, deadline) {
      const { name, email } = contact
      const { first, last } = splitName(name)
      const attributes = { [firstName]: first, ...(last !== undefined && { [lastName]: last }) }
      const body = { email, attributes, listIds: settings.BREVO_LIST_IDS, updateEnabled: false }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/v3/contacts', body }, deadline)
      if (reply.is !== 'answered') return reply
      const { status, json } = reply
      const id = idAt(json, 'id')
      if (status === 201 && id !== undefined) return { is: 'created', providerId: id }
      const code = memberAt(json, 'code')
      // The metadata came later than the code, and has been seen with another one.
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
      const found = await call({ to: 'find a contact', method: 'GET', path }, deadline)
      if (found.is !== 'answered') return found
      const providerId = idAt(found.json, 'id')
      if (found.status !== 200 || providerId === undefined) return judge(found)
      const ours = isYoungerThanSignup(textAt(found.json, 'createdAt'), contact)
      return { is: 'existing', providerId, ...(ours !== undefined && { ours }) }
    },

    async automation({ name, contact: { email, providerId } }, deadline) {
      const body = {
        // Letters, digits, - and _ are allowed.
        event_name: name.replaceAll(/[^A-Za-z0-9_-]/g, '_'),
        // An address that is unknown by now would become a new contact; an id does not.
        identifiers: providerId === undefined ? { email_id: email } : { contact_id: Number(providerId) },
      }
      const reply = await call({ to: 'send an event', method: 'POST', path: '/v3/events', body }, deadline)
      if (reply.is !== 'answered') return reply
      return reply.status < 300 ? { is: 'delivered' } : judge(reply)
    },
  }
}
