import { idAt, judge, judgeDelivery, memberAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

const DAY = 86_400_000

/**
 * https://developers.mailerlite.com/docs/subscribers and /groups: a creation updates an existing subscriber, so a lookup
 * comes first. There are no events: joining a group starts the owner's automation; joining again changes nothing.
 */
export function mailerlite(settings: SettingsOf<'mailerlite'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.MAILERLITE_BASE_URL,
    // Required in every request, even without a body.
    headers: { authorization: `Bearer ${settings.MAILERLITE_API_KEY}`, 'content-type': 'application/json' },
  })
  const group = settings.MAILERLITE_GROUP_ID

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email } = contact
      const path = `/api/subscribers/${encodeURIComponent(email)}`
      const found = await call({ to: 'find a subscriber', method: 'GET', path }, attempt)
      if (found.is !== 'answered') return found
      const foundId = idAt(found.json, 'data', 'id')
      if (found.status === 200 && foundId !== undefined) {
        const ours = doubt ? canBeOurs(textAt(found.json, 'data', 'created_at'), contact) : undefined
        return { is: 'existing', providerId: foundId, ours }
      }
      if (found.status !== 404) return judge(found)

      const { first, last } = splitName(name)
      const body = { email, fields: { name: first, last_name: last } }
      const reply = await call({ to: 'create a subscriber', method: 'POST', path: '/api/subscribers', body }, attempt)
      if (reply.is !== 'answered') return reply
      const providerId = idAt(reply.json, 'data', 'id')
      // Only 200 is documented, but other creations answer with 201.
      if ((reply.status === 200 || reply.status === 201) && providerId !== undefined)
        return { is: 'created', providerId }
      if (reply.status === 422 && isOnlyOfAddress(memberAt(reply.json, 'errors'))) {
        return { is: 'refused', reason: 'it is not valid there' }
      }
      return judge(reply)
    },

    automation:
      group === undefined
        ? null
        : async ({ contact }, attempt) => {
            const subscriber = encodeURIComponent(contact.providerId ?? contact.email)
            const path = `/api/subscribers/${subscriber}/groups/${encodeURIComponent(group)}`
            const reply = await call({ to: 'add to the group', method: 'POST', path }, attempt)
            if (reply.is !== 'answered') return reply
            const joined = reply.status < 300 && idAt(reply.json, 'data', 'id') === group
            return joined ? { is: 'delivered' } : judgeDelivery(reply)
          },

    async check(attempt) {
      const query = { limit: '1' }
      const path = group === undefined ? '/api/groups' : `/api/groups/${encodeURIComponent(group)}/subscribers`
      const reply = await call({ to: 'check the API key', method: 'GET', path, query }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && Array.isArray(memberAt(reply.json, 'data')) ? null : judge(reply)
    },
  }
}

const isOnlyOfAddress = (errors: unknown): boolean =>
  typeof errors === 'object' && errors !== null && Object.keys(errors).join() === 'email'

/** Its times have no zone, so only a subscriber that is a day older is certainly not ours. */
function canBeOurs(created: string | undefined, contact: Contact): boolean | undefined {
  const createdAt = new Date(contact.createdAt.getTime() - DAY)
  return isYoungerThanSignup(created && `${created.replace(' ', 'T')}Z`, { ...contact, createdAt })
}
