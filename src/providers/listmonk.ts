import { idAt, judge, memberAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import type { Connect, VendorClient } from './vendor-client.ts'

/** https://listmonk.app/docs/apis/apis and the source, https://github.com/knadh/listmonk. Its texts are localised. */
export function listmonk(settings: SettingsOf<'listmonk'>, connect: Connect): VendorClient {
  const { LISTMONK_LIST_IDS: lists, LISTMONK_TEMPLATE_ID: template } = settings
  const { call } = connect({
    base: `${settings.LISTMONK_BASE_URL}/api`,
    headers: { authorization: `token ${settings.LISTMONK_USER}:${settings.LISTMONK_TOKEN}` },
  })

  /** Lists that do not exist, or that the API user may not manage, are left out of a creation without a word. */
  function missing(subscriber: unknown): readonly number[] | undefined {
    const joined = memberAt(subscriber, 'lists')
    return Array.isArray(joined) ? lists.filter(id => !joined.some(each => memberAt(each, 'id') === id)) : undefined
  }

  /** Of a subscriber who is there, when there is doubt: whether it is ours, and complete. */
  async function existing({ id, email }: Contact, deadline: AbortSignal): Promise<Creation> {
    const query = { search: exactly(email), per_page: '20' }
    const reply = await call({ to: 'find a subscriber', method: 'GET', path: '/subscribers', query }, deadline)
    if (reply.is !== 'answered') return reply
    const found = memberAt(reply.json, 'data', 'results')
    if (reply.status !== 200 || !Array.isArray(found)) return judge(reply)
    const match: unknown = found.find(each => textAt(each, 'email') === email)
    // The API user sees the subscribers of its own lists alone.
    if (match === undefined) return { is: 'existing' }
    const providerId = idAt(match, 'id')
    const absent = missing(match)
    if (providerId === undefined || absent === undefined) return judge(reply)
    const ours = textAt(match, 'attribs', 'waitlist') === id
    return ours && absent.length > 0 ? add(providerId, absent, deadline) : { is: 'existing', providerId, ours }
  }

  /** Never certain: what is not allowed is left out here too. The next attempt sees what came of it. */
  async function add(subscriber: string, absent: readonly number[], deadline: AbortSignal): Promise<Failure> {
    const body = { ids: [Number(subscriber)], action: 'add', target_list_ids: absent, status: 'unconfirmed' }
    const reply = await call({ to: 'add to lists', method: 'PUT', path: '/subscribers/lists', body }, deadline)
    if (reply.is !== 'answered') return { ...reply, is: 'unclear' }
    return { is: 'unclear', why: `${reply.summary}: lists ${absent.join(', ')} were missing` }
  }

  return {
    async createContact(contact, doubt, deadline) {
      const { id, name, email } = contact
      const body = { email, name, status: 'enabled', lists, attribs: { waitlist: id } }
      const reply = await call({ to: 'create a subscriber', method: 'POST', path: '/subscribers', body }, deadline)
      if (reply.is !== 'answered') return reply
      const { status, json, summary } = reply
      const providerId = idAt(json, 'data', 'id')
      const absent = missing(memberAt(json, 'data'))
      if (status === 200 && providerId !== undefined && absent !== undefined) {
        if (absent.length === 0) return { is: 'created', providerId }
        const why = `${summary}, but not on the lists ${absent.join(', ')}: do they exist, may the API user manage them?`
        return { is: 'unclear', why }
      }
      if (status === 409) return doubt ? existing(contact, deadline) : { is: 'existing' }
      // What a 400 says of the address is in the server's language; what it says of our header is not.
      const message = textAt(json, 'message')
      if (status === 400 && message !== undefined && !/authorization|api_key|token|base64/i.test(message)) {
        return { is: 'refused', reason: 'it is not valid there, or its domain is blocked' }
      }
      return judge(reply)
    },

    automation:
      template === undefined
        ? null
        : async ({ contact: { email, providerId } }, deadline) => {
            const to = providerId === undefined ? { subscriber_email: email } : { subscriber_id: Number(providerId) }
            const body = { ...to, template_id: template }
            const reply = await call({ to: 'send a mail', method: 'POST', path: '/tx', body }, deadline)
            if (reply.is !== 'answered') return reply
            return reply.status === 200 && memberAt(reply.json, 'data') === true ? { is: 'delivered' } : judge(reply)
          },

    async check(deadline) {
      for (const id of lists) {
        const reply = await call({ to: `look at list ${id}`, method: 'GET', path: `/lists/${id}` }, deadline)
        if (reply.is !== 'answered') return reply
        if (reply.status !== 200 || memberAt(reply.json, 'data', 'id') !== id) return judge(reply)
      }
      return null
    },
  }
}

/** The search is a regular expression of PostgreSQL (§9.7.3), in which addresses may mean something else. */
const exactly = (email: string): string => `^${email.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`
