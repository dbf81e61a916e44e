import { idAt, judge, memberAt, textAt } from '../outbound/reply.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, saysInvalidAddress, splitName, type VendorClient } from './vendor-client.ts'

/** Says in Loops where a contact comes from, and later which ones we made. */
const SOURCE = 'waitlist'

/** https://loops.so/docs/api-reference: 409 tells a known address, and that an event's key was used. */
export function loops(settings: SettingsOf<'loops'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.LOOPS_BASE_URL,
    headers: { authorization: `Bearer ${settings.LOOPS_API_KEY}` },
  })
  const mailingLists =
    settings.LOOPS_MAILING_LISTS && Object.fromEntries(settings.LOOPS_MAILING_LISTS.map(id => [id, true]))

  return {
    async createContact({ name, email }, doubt, deadline) {
      const { first, last } = splitName(name)
      const body = { email, firstName: first, lastName: last, source: SOURCE, mailingLists }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/v1/contacts/create', body }, deadline)
      if (reply.is !== 'answered') return reply
      const id = idAt(reply.json, 'id')
      if (reply.status === 200 && id !== undefined) return { is: 'created', providerId: id }
      // The signup is dropped only when it is certain that the address is what is refused.
      if (reply.status === 400 && saysInvalidAddress(textAt(reply.json, 'message'))) {
        return { is: 'refused', reason: 'it is not valid there' }
      }
      if (reply.status !== 409) return judge(reply)
      if (!doubt) return { is: 'existing' }

      const found = await call(
        { to: 'find a contact', method: 'GET', path: '/v1/contacts/find', query: { email } },
        deadline,
      )
      if (found.is !== 'answered') return found
      if (found.status !== 200 || !Array.isArray(found.json)) return judge(found)
      const providerId = idAt(found.json, 0, 'id')
      return { is: 'existing', ours: memberAt(found.json, 0, 'source') === SOURCE, ...(providerId && { providerId }) }
    },

    async automation({ id, name, contact }, deadline) {
      const headers = { 'idempotency-key': id }
      const body = { email: contact.email, eventName: name }
      const reply = await call(
        { to: 'send an event', method: 'POST', path: '/v1/events/send', headers, body },
        deadline,
      )
      if (reply.is !== 'answered') return reply
      // 409: this key was used, so the event is there.
      if ((reply.status === 200 && memberAt(reply.json, 'success') === true) || reply.status === 409)
        return { is: 'delivered' }
      return judge(reply)
    },

    async check(deadline) {
      const reply = await call({ to: 'check the API key', method: 'GET', path: '/v1/api-key' }, deadline)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && textAt(reply.json, 'teamName') !== undefined ? null : judge(reply)
    },
  }
}
