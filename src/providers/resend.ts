import { idAt, judge, judgeDelivery, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Creation } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/**
 * https://resend.com/docs/api-reference/contacts and /events. It is not documented what a second creation of an address
 * does, so the address is looked up first. Segments are sent as objects, as the official clients do.
 */
export function resend(settings: SettingsOf<'resend'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.RESEND_BASE_URL,
    headers: { authorization: `Bearer ${settings.RESEND_API_KEY}` },
    waitFields: ['retry-after', 'ratelimit-reset'],
  })
  const segment = settings.RESEND_SEGMENT_ID

  return {
    async createContact(contact, _doubt, attempt) {
      const { name, email } = contact
      const path = `/contacts/${encodeURIComponent(email)}`
      const found = await call({ to: 'find a contact', method: 'GET', path }, attempt)
      if (found.is !== 'answered') return found
      const foundId = idAt(found.json, 'id')
      if (found.status === 200 && foundId !== undefined) {
        const ours = isYoungerThanSignup(textAt(found.json, 'created_at'), contact)
        return { is: 'existing', providerId: foundId, ours }
      }
      // Any other 404 means that RESEND_BASE_URL is wrong.
      if (found.status !== 404 || memberAt(found.json, 'name') !== 'not_found') return refusedOr(found)

      const { first, last } = splitName(name)
      const body = { email, first_name: first, last_name: last, segments: segment && [{ id: segment }] }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/contacts', body }, attempt)
      if (reply.is !== 'answered') return reply
      const providerId = idAt(reply.json, 'id')
      if (reply.status < 300 && providerId !== undefined) return { is: 'created', providerId }
      return refusedOr(reply)
    },

    async automation({ name, contact }, attempt) {
      const { providerId, email } = contact
      const body = { event: name, contact_id: providerId, email: providerId === undefined ? email : undefined }
      const reply = await call({ to: 'send an event', method: 'POST', path: '/events/send', body }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status < 300 && textAt(reply.json, 'event') !== undefined
        ? { is: 'delivered' }
        : judgeDelivery(reply)
    },

    /** Also refuses a key that may only send mail. */
    async check(attempt) {
      const reply = await call(
        segment === undefined
          ? { to: 'check the API key', method: 'GET', path: '/contacts', query: { limit: '1' } }
          : {
              to: 'check the API key and the segment',
              method: 'GET',
              path: `/segments/${encodeURIComponent(segment)}`,
            },
        attempt,
      )
      if (reply.is !== 'answered') return reply
      const object = segment === undefined ? 'list' : 'segment'
      return reply.status === 200 && memberAt(reply.json, 'object') === object ? null : judge(reply)
    },
  }
}

/** https://resend.com/docs/api-reference/errors: the message of a `validation_error` names the field. */
function refusedOr(reply: Reply): Creation {
  const { status, json } = reply
  const isInvalid = (status === 400 || status === 422) && memberAt(json, 'name') === 'validation_error'
  if (!isInvalid || !/\bemail\b/i.test(textAt(json, 'message') ?? '')) return judge(reply)
  return { is: 'refused', reason: 'it is not valid there' }
}
