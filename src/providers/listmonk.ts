import { address, optional, required, word } from '../config/readers.ts'
import { contactIn, number, numbers, query, type Vendor } from './vendor.ts'

const settings = {
  LISTMONK_BASE_URL: required(address, 'Address of your listmonk, without /api.', 'The address of its admin page.'),
  LISTMONK_USER: required(word, 'Name of an API user.', 'listmonk: Users, New, type API.'),
  LISTMONK_TOKEN: required(word, 'Token of the API user.', 'listmonk: shown once when the API user is made.'),
  LISTMONK_LIST_IDS: required(numbers, 'Lists to add the contact to.', 'listmonk: Lists; the number beside the name.'),
  LISTMONK_TEMPLATE_ID: optional(number, 'Transactional template to send.', 'listmonk: Campaigns, Templates.'),
}

/** The search is a PostgreSQL regular expression (§9.7.3), so special characters in an address are escaped. */
const exactly = (email: string): string => `^${email.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`

/** https://listmonk.app/docs/apis/apis and the source, https://github.com/knadh/listmonk. */
export const listmonk: Vendor<typeof settings> = {
  title: 'listmonk',
  settings,
  repeatable: 0,
  namesEvents: false,
  takesFields: true,
  connect: ({ LISTMONK_BASE_URL, LISTMONK_USER, LISTMONK_TOKEN }) => ({
    base: `${LISTMONK_BASE_URL}/api`,
    headers: { authorization: `token ${LISTMONK_USER}:${LISTMONK_TOKEN}` },
  }),
  check: ({ LISTMONK_LIST_IDS: lists }) => ['/subscribers?per_page=1', ...lists.map(id => `/lists/${id}`)],

  async create({ id, name, email, source }, { settings, fields, post }) {
    const attribs = { ...fields, ...source, waitlist: id }
    const body = { email, name, status: 'enabled', lists: settings.LISTMONK_LIST_IDS, attribs }
    const reply = await post('create a subscriber', '/subscribers', body)
    return reply.status === 409 ? { is: 'existing' } : contactIn('created', reply, reply.json?.data?.id)
  },
  // Only a server in English says so; others keep the signup pending.
  refusesAddress: ({ status, json }) =>
    status === 400 && /^(?:invalid e-?mail|the e-?mail domain is blocklisted)\.?$/i.test(json?.message),

  notifies: ({ LISTMONK_TEMPLATE_ID: template }) => template !== undefined,
  notify({ contact: { email, providerId } }, { settings, post }) {
    const to = providerId === undefined ? { subscriber_email: email } : { subscriber_id: Number(providerId) }
    return post('send a mail', '/tx', { ...to, template_id: settings.LISTMONK_TEMPLATE_ID })
  },

  async remove(email, { get, send }) {
    // A second row could be too much to read: each has all of its lists.
    const reply = await get('find a subscriber', `/subscribers${query({ search: exactly(email), per_page: '1' })}`)
    const rows: unknown = reply.json?.data?.results
    if (reply.is !== 'ok' || !Array.isArray(rows)) return reply
    if (rows.length === 0) return { is: 'absent' }
    const { id, email: found } = rows[0] ?? {}
    // Names are searched, too.
    if (found !== email) return { is: 'by hand', how: 'look for the address in listmonk, under Subscribers' }
    return send({ action: 'delete a subscriber', method: 'DELETE', path: `/subscribers/${id}` })
  },
}
