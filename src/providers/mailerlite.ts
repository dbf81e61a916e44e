import { optional, required, withDefault, word, yesOrNo } from '../config/readers.ts'
import { ALWAYS, base, contactIn, splitName, type Vendor } from './vendor.ts'

const settings = {
  MAILERLITE_API_KEY: required(word, 'API token.', 'MailerLite: Integrations, API, Generate new token.'),
  MAILERLITE_GROUP_ID: optional(word, 'Group that starts the automation.', 'MailerLite: Subscribers, Groups.'),
  MAILERLITE_DOUBLE_OPT_IN: withDefault(yesOrNo, 'false', 'Whether the contact is unconfirmed until it confirms.'),
  MAILERLITE_BASE_URL: base('https://connect.mailerlite.com'),
}

const pathOf = (subscriber: string): string => `/api/subscribers/${encodeURIComponent(subscriber)}`

/**
 * https://developers.mailerlite.com/docs/subscribers and /groups: a creation updates an existing subscriber, so a lookup
 * comes first. There are no events: joining a group starts the owner's automation; joining again changes nothing.
 */
export const mailerlite: Vendor<typeof settings> = {
  title: 'MailerLite',
  settings,
  repeatable: ALWAYS,
  namesEvents: false,
  connect: ({ MAILERLITE_BASE_URL, MAILERLITE_API_KEY }) => ({
    base: MAILERLITE_BASE_URL,
    // The type is required in every request, even without a body.
    headers: { authorization: `Bearer ${MAILERLITE_API_KEY}`, 'content-type': 'application/json' },
  }),
  check: ({ MAILERLITE_GROUP_ID: group }) => [
    group === undefined ? '/api/groups?limit=1' : `/api/groups/${encodeURIComponent(group)}/subscribers?limit=1`,
  ],

  async create({ name, email, createdAt }, { settings, get, post }) {
    const found = await get('find a subscriber', pathOf(email))
    if (found.status !== 404) return contactIn('existing', found, found.json?.data?.id)
    const { first, last } = splitName(name)
    // With double opt-in, a contact opts in when it confirms. Times without a zone are in UTC.
    const consent = settings.MAILERLITE_DOUBLE_OPT_IN
      ? { status: 'unconfirmed' }
      : { opted_in_at: createdAt.toISOString().slice(0, 19).replace('T', ' ') }
    const body = { email, fields: { name: first, last_name: last }, ...consent }
    const reply = await post('create a subscriber', '/api/subscribers', body)
    // 200: another tool added it after the look-up.
    return contactIn(reply.status === 200 ? 'existing' : 'created', reply, reply.json?.data?.id)
  },
  refusesAddress: ({ status, json }) => status === 422 && Object.keys(json?.errors ?? {}).join() === 'email',

  notifies: ({ MAILERLITE_GROUP_ID: group }) => group !== undefined,
  notify({ contact: { email, providerId } }, { settings, post }) {
    const group = encodeURIComponent(settings.MAILERLITE_GROUP_ID!)
    return post('add to the group', `${pathOf(providerId ?? email)}/groups/${group}`)
  },

  /** To delete a subscriber would keep all about it, in case it comes back. */
  async remove(email, { get, post }) {
    const found = await get('find a subscriber', pathOf(email))
    const { id } = found.json?.data ?? {}
    return found.is === 'ok' && id !== undefined ? post('forget a subscriber', `${pathOf(String(id))}/forget`) : found
  },
}
