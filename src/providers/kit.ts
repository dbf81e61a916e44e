import { optional, required, word } from '../config/readers.ts'
import type { Reply } from '../http-client/call.ts'
import type { Contact } from '../signup/contact.ts'
import { ALWAYS, type Api, base, contactIn, number, query, splitName, type Vendor } from './vendor.ts'

const settings = {
  KIT_API_KEY: required(word, 'API key (v4).', 'Kit: Settings, Developer, V4 keys.'),
  KIT_TAG_ID: optional(number, 'Tag that starts the automation.', 'Kit: Subscribers, Tags; the number in its address.'),
  KIT_FORM_ID: optional(number, 'Form to add the contact to.', 'Kit: Grow, Forms; the number in its address.'),
  KIT_BASE_URL: base('https://api.kit.com'),
}

/** The subscriber with this very address; null: there is none. */
async function find(email: string, { get }: Api) {
  // Without a status only active ones are found.
  const reply = await get('find a subscriber', `/v4/subscribers${query({ email_address: email, status: 'all' })}`)
  const all: unknown = reply.json?.subscribers
  if (reply.is !== 'ok' || !Array.isArray(all)) return reply
  const found = all.find(each => each?.email_address?.toLowerCase() === email)
  if (found === undefined) return null
  const creation = contactIn('existing', reply, found.id)
  // A form would subscribe it again.
  return /cancelled|complained|bounced/.test(found.state) ? { ...creation, hasLeft: true as const } : creation
}

/** To add a subscriber again changes nothing. */
function add(place: string, { email, providerId }: Contact, { post }: Pick<Api, 'post'>): Promise<Reply> {
  const path = `/v4/${place}/subscribers`
  return providerId === undefined
    ? post(`add to ${place}`, path, { email_address: email })
    : post(`add to ${place}`, `${path}/${encodeURIComponent(providerId)}`, {})
}

/**
 * https://developers.kit.com/api-reference: the creation is an upsert that would rewrite a first name, so the address is
 * looked up first. A form takes a call of its own, and so does the tag that starts the automation.
 */
export const kit: Vendor<typeof settings> = {
  title: 'Kit',
  settings,
  repeatable: ALWAYS,
  namesEvents: false,
  takesFields: true,
  connect: ({ KIT_BASE_URL, KIT_API_KEY }) => ({ base: KIT_BASE_URL, headers: { 'x-kit-api-key': KIT_API_KEY } }),
  check: ({ KIT_TAG_ID: tag, KIT_FORM_ID: form }) => [
    '/v4/account',
    ...(tag === undefined ? [] : [`/v4/tags/${tag}/subscribers?per_page=1`]),
    ...(form === undefined ? [] : [`/v4/forms/${form}/subscribers?per_page=1`]),
  ],

  async create({ name, email }, api) {
    const found = await find(email, api)
    if (found !== null) return found
    const { settings, fields, post } = api
    // The form makes it active, at once or after it has asked for a confirmation.
    const state = settings.KIT_FORM_ID === undefined ? undefined : 'inactive'
    const body = { email_address: email, first_name: splitName(name).first, state, fields }
    const reply = await post('create a subscriber', '/v4/subscribers', body)
    // 200: another tool added it after the look-up.
    return contactIn(reply.status === 200 ? 'existing' : 'created', reply, reply.json?.subscriber?.id)
  },
  refusesAddress: ({ status, json }) => status === 422 && json?.errors?.[0] === 'Email address is invalid',

  complete: async (contact, { settings: { KIT_FORM_ID: form }, post }) =>
    form === undefined ? null : add(`forms/${form}`, contact, { post }),

  notifies: ({ KIT_TAG_ID: tag }) => tag !== undefined,
  notify: ({ contact }, { settings, post }) => add(`tags/${settings.KIT_TAG_ID}`, contact, { post }),

  /** Kit can unsubscribe by its API, but not delete. */
  async remove(email, api) {
    const found = await find(email, api)
    if (found === null) return { is: 'absent' }
    const how = 'delete the subscriber in Kit, under Subscribers'
    return found.is === 'existing' ? { is: 'by hand', how } : (found as Reply)
  },
}
