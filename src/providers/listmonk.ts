import type { Attempt } from '../outbound/attempt.ts'
import { idAt, inDoubt, judge, judgeDelivery, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import type { Connect, VendorClient } from './vendor-client.ts'

/** https://listmonk.app/docs/apis/apis and the source, https://github.com/knadh/listmonk. Its messages are localised. */
export function listmonk(settings: SettingsOf<'listmonk'>, connect: Connect): VendorClient {
  const { LISTMONK_LIST_IDS: lists, LISTMONK_TEMPLATE_ID: template } = settings
  const { call } = connect({
    base: `${settings.LISTMONK_BASE_URL}/api`,
    headers: { authorization: `token ${settings.LISTMONK_USER}:${settings.LISTMONK_TOKEN}` },
  })

  /** A creation silently skips lists that do not exist or that the API user may not manage. */
  function missing(subscriber: unknown): readonly number[] | undefined {
    const joined = memberAt(subscriber, 'lists')
    return Array.isArray(joined) ? lists.filter(id => !joined.some(each => memberAt(each, 'id') === id)) : undefined
  }

  /** For an existing subscriber: in doubt, checks whether it is ours, and then completes it. */
  async function existing(contact: Contact, attempt: Attempt, completed = false): Promise<Creation> {
    const { id, email } = contact
    const query = { search: exactly(email), per_page: '20' }
    const reply = await call({ to: 'find a subscriber', method: 'GET', path: '/subscribers', query }, attempt)
    if (reply.is !== 'answered') return reply
    const found = memberAt(reply.json, 'data', 'results')
    if (reply.status !== 200 || !Array.isArray(found)) return judge(reply)
    const match: unknown = found.find(each => textAt(each, 'email') === email)
    // The API user sees only the subscribers of its own lists.
    if (match === undefined) return { is: 'existing' }
    const providerId = idAt(match, 'id')
    const absent = missing(match)
    if (providerId === undefined || absent === undefined) return judge(reply)
    const ours = textAt(match, 'attribs', 'waitlist') === id
    if (!ours || absent.length === 0) return { is: 'existing', providerId, ours }
    if (completed) return notOn(absent, reply)
    return (await add(providerId, absent, attempt)) ?? existing(contact, attempt, true)
  }

  /** Null: it was accepted. This call also skips forbidden lists silently, so the lists must be checked afterwards. */
  async function add(subscriber: string, absent: readonly number[], attempt: Attempt): Promise<Failure | null> {
    const body = { ids: [Number(subscriber)], action: 'add', target_list_ids: absent, status: 'unconfirmed' }
    const reply = await call({ to: 'add to lists', method: 'PUT', path: '/subscribers/lists', body }, attempt)
    if (reply.is !== 'answered') return inDoubt(reply)
    return reply.status < 300 ? null : notOn(absent, reply)
  }

  /** The subscriber exists, and only the operator can fix the lists. */
  const notOn = (absent: readonly number[], { summary }: Reply): Failure => ({
    is: 'misconfigured',
    why: `${summary}, but not on the lists ${absent.join(', ')}: do they exist, may the API user manage them?`,
    tookEffect: true,
  })

  return {
    async createContact(contact, doubt, attempt) {
      const { id, name, email } = contact
      const body = { email, name, status: 'enabled', lists, attribs: { waitlist: id } }
      const reply = await call({ to: 'create a subscriber', method: 'POST', path: '/subscribers', body }, attempt)
      if (reply.is !== 'answered') return reply
      const { status, json } = reply
      const providerId = idAt(json, 'data', 'id')
      const absent = missing(memberAt(json, 'data'))
      if (status === 200 && providerId !== undefined && absent !== undefined) {
        return absent.length === 0 ? { is: 'created', providerId } : notOn(absent, reply)
      }
      if (status === 409) return doubt ? existing(contact, attempt) : { is: 'existing' }
      // What a 400 says about the address is in the server's language; what it says about our header is not.
      const message = textAt(json, 'message')
      if (status === 400 && message !== undefined && !/authorization|api_key|token|base64/i.test(message)) {
        return { is: 'refused', reason: 'it is not valid there, or its domain is blocked' }
      }
      return judge(reply)
    },

    automation:
      template === undefined
        ? null
        : async ({ contact: { email, providerId } }, attempt) => {
            const to = providerId === undefined ? { subscriber_email: email } : { subscriber_id: Number(providerId) }
            const body = { ...to, template_id: template }
            const reply = await call({ to: 'send a mail', method: 'POST', path: '/tx', body }, attempt)
            if (reply.is !== 'answered') return reply
            const sent = reply.status === 200 && memberAt(reply.json, 'data') === true
            return sent ? { is: 'delivered' } : judgeDelivery(reply)
          },

    async check(attempt) {
      for (const id of lists) {
        const reply = await call({ to: `look at list ${id}`, method: 'GET', path: `/lists/${id}` }, attempt)
        if (reply.is !== 'answered') return reply
        if (reply.status !== 200 || memberAt(reply.json, 'data', 'id') !== id) return judge(reply)
      }
      return null
    },
  }
}

/** The search is a PostgreSQL regular expression (§9.7.3), so special characters in an address are escaped. */
const exactly = (email: string): string => `^${email.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`
