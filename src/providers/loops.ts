import { idAt, judge, judgeDelivery, memberAt, textAt } from '../outbound/reply.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, saysInvalidAddress, splitName, type VendorClient } from './vendor-client.ts'

/** Shows in Loops where a contact comes from, and to us which ones we created. */
const SOURCE = 'waitlist'

/** https://loops.so/docs/api-reference: a 409 means a known address, or an idempotency key that was used before. */
export function loops(settings: SettingsOf<'loops'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.LOOPS_BASE_URL,
    headers: { authorization: `Bearer ${settings.LOOPS_API_KEY}` },
  })
  const mailingLists =
    settings.LOOPS_MAILING_LISTS && Object.fromEntries(settings.LOOPS_MAILING_LISTS.map(id => [id, true]))

  return {
    async createContact({ name, email }, doubt, attempt) {
      const { first, last } = splitName(name)
      const body = { email, firstName: first, lastName: last, source: SOURCE, mailingLists }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/v1/contacts/create', body }, attempt)
      if (reply.is !== 'answered') return reply
      const id = idAt(reply.json, 'id')
      if (reply.status === 200 && id !== undefined) return { is: 'created', providerId: id }
      // The signup is dropped only if it is certain that the address is refused.
      if (reply.status === 400 && saysInvalidAddress(textAt(reply.json, 'message'))) {
        return { is: 'refused', reason: 'it is not valid there' }
      }
      if (reply.status !== 409) return judge(reply)
      if (!doubt) return { is: 'existing' }

      const found = await call(
        { to: 'find a contact', method: 'GET', path: '/v1/contacts/find', query: { email } },
        attempt,
      )
      if (found.is !== 'answered') return found
      if (found.status !== 200 || !Array.isArray(found.json)) return judge(found)
      const providerId = idAt(found.json, 0, 'id')
      return { is: 'existing', ours: memberAt(found.json, 0, 'source') === SOURCE, providerId }
    },

    async automation({ id, name, contact }, attempt) {
      const headers = { 'idempotency-key': id }
      const body = { email: contact.email, eventName: name }
      const reply = await call({ to: 'send an event', method: 'POST', path: '/v1/events/send', headers, body }, attempt)
      if (reply.is !== 'answered') return reply
      // 409: this key was used before, so the event exists.
      if ((reply.status === 200 && memberAt(reply.json, 'success') === true) || reply.status === 409)
        return { is: 'delivered' }
      return judgeDelivery(reply)
    },

    async check(attempt) {
      const reply = await call({ to: 'check the API key', method: 'GET', path: '/v1/api-key' }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && textAt(reply.json, 'teamName') !== undefined ? null : judge(reply)
    },
  }
}
