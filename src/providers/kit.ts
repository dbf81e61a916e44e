import { idAt, judge, judgeDelivery, memberAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Creation } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, saysInvalidAddress, splitName, type VendorClient } from './vendor-client.ts'

/** Milliseconds after a 429, which does not say how long to wait: the window of the limit. */
const WINDOW = 60_000

/**
 * https://developers.kit.com/api-reference: the creation is an upsert that would rewrite a first name, so the address is
 * looked up first. A tag or a sequence starts the automation, and giving it again changes nothing.
 */
export function kit(settings: SettingsOf<'kit'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.KIT_BASE_URL,
    headers: { 'x-kit-api-key': settings.KIT_API_KEY },
    wait: WINDOW,
  })
  const { KIT_TAG_ID: tag, KIT_SEQUENCE_ID: sequence } = settings
  const starts = [
    ...(tag === undefined ? [] : [{ to: 'tag a subscriber', path: `/v4/tags/${tag}/subscribers` }]),
    ...(sequence === undefined ? [] : [{ to: 'start a sequence', path: `/v4/sequences/${sequence}/subscribers` }]),
  ]

  return {
    async createContact(contact, _doubt, attempt) {
      const { name, email } = contact
      // Without a status only active ones are found.
      const query = { email_address: email, status: 'all' }
      const found = await call({ to: 'find a subscriber', method: 'GET', path: '/v4/subscribers', query }, attempt)
      if (found.is !== 'answered') return found
      const subscribers = memberAt(found.json, 'subscribers')
      if (found.status !== 200 || !Array.isArray(subscribers)) return judge(found)
      const known = subscribers.find(each => textAt(each, 'email_address')?.toLowerCase() === email)
      if (known !== undefined) return existing(known, contact) ?? judge(found)

      const body = { email_address: email, first_name: splitName(name).first }
      const reply = await call({ to: 'create a subscriber', method: 'POST', path: '/v4/subscribers', body }, attempt)
      if (reply.is !== 'answered') return reply
      const { status, json } = reply
      const id = idAt(json, 'subscriber', 'id')
      if ((status === 201 || status === 202) && id !== undefined) return { is: 'created', providerId: id }
      // Somebody else added it after the lookup.
      if (status === 200) return existing(memberAt(json, 'subscriber'), contact) ?? judge(reply)
      if (status === 422 && saysInvalidAddress(JSON.stringify(memberAt(json, 'errors')))) {
        return { is: 'refused', reason: 'it is not valid there' }
      }
      return judge(reply)
    },

    automation:
      starts.length === 0
        ? null
        : async ({ contact: { email, providerId } }, attempt) => {
            const whom =
              providerId === undefined
                ? { suffix: '', body: { email_address: email } }
                : { suffix: `/${encodeURIComponent(providerId)}`, body: {} }
            for (const { to, path } of starts) {
              const reply = await call({ to, method: 'POST', path: path + whom.suffix, body: whom.body }, attempt)
              if (reply.is !== 'answered') return reply
              // 201: added now. 200: the subscriber had it already.
              if (reply.status >= 300 || idAt(reply.json, 'subscriber', 'id') === undefined) return judgeDelivery(reply)
            }
            return { is: 'delivered' }
          },

    async check(attempt) {
      const reply = await call({ to: 'check the API key', method: 'GET', path: '/v4/account' }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && idAt(reply.json, 'account', 'id') !== undefined ? null : judge(reply)
    },
  }
}

/** Undefined: the answer is not a subscriber. */
function existing(subscriber: unknown, contact: Contact): Creation | undefined {
  const providerId = idAt(subscriber, 'id')
  const ours = isYoungerThanSignup(textAt(subscriber, 'created_at'), contact)
  return providerId === undefined ? undefined : { is: 'existing', providerId, ours }
}
