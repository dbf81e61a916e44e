import { optional, required, withDefault, word, yesOrNo } from '../config/readers.ts'
import { ALWAYS, type Api, base, contactIn, idOf, query, splitName, type Vendor } from './vendor.ts'

const settings = {
  KLAVIYO_API_KEY: required(word, 'Private API key.', 'Klaviyo: Settings, API keys.'),
  KLAVIYO_LIST_ID: optional(word, 'List to add the contact to.', 'Klaviyo: Audience, Lists & segments, Settings.'),
  KLAVIYO_CONSENT: withDefault(yesOrNo, 'false', 'Whether a new contact consents to marketing: your form must say so.'),
  KLAVIYO_BASE_URL: base('https://a.klaviyo.com'),
}

const JSON_API = 'application/vnd.api+json'

const post = ({ post }: Pick<Api, 'post'>, action: string, path: string, data: unknown) =>
  post(action, `/api${path}`, { data }, { 'content-type': JSON_API })

/**
 * https://developers.klaviyo.com/en/reference/api_overview (JSON:API). A 409 means a known address and contains its id. A
 * second step subscribes a new profile, if the settings say that it consents, or just adds it to the list.
 */
export const klaviyo: Vendor<typeof settings> = {
  title: 'Klaviyo',
  settings,
  repeatable: ALWAYS,
  namesEvents: true,
  connect: ({ KLAVIYO_BASE_URL, KLAVIYO_API_KEY }) => ({
    base: KLAVIYO_BASE_URL,
    headers: { authorization: `Klaviyo-API-Key ${KLAVIYO_API_KEY}`, revision: '2026-07-15', accept: JSON_API },
  }),
  check: ({ KLAVIYO_LIST_ID: list }) => [
    `/api/profiles${query({ 'fields[profile]': 'created', 'page[size]': '1' })}`,
    ...(list === undefined ? [] : [`/api/lists/${encodeURIComponent(list)}${query({ 'fields[list]': 'name' })}`]),
  ],

  async create({ name, email, source: properties }, api) {
    const { first, last } = splitName(name)
    const attributes = { email, first_name: first, last_name: last, properties }
    const reply = await post(api, 'create a profile', '/profiles', { type: 'profile', attributes })
    if (reply.status !== 409) return contactIn('created', reply, reply.json?.data?.id)
    return { is: 'existing', providerId: idOf(reply.json?.errors?.[0]?.meta?.duplicate_profile_id) }
  },
  refusesAddress: ({ status, json }) =>
    status === 400 && /\/attributes\/email$/.test(json?.errors?.[0]?.source?.pointer),

  async complete({ email, providerId: id }, api) {
    const { KLAVIYO_LIST_ID: list, KLAVIYO_CONSENT: consent } = api.settings
    if (id === undefined) return null
    if (!consent) {
      if (list === undefined) return null
      const path = `/lists/${encodeURIComponent(list)}/relationships/profiles`
      return post(api, 'add to the list', path, [{ type: 'profile', id }])
    }
    const shown = { 'additional-fields[profile]': 'subscriptions', 'fields[profile]': 'subscriptions' }
    const found = await api.get('get a profile', `/api/profiles/${encodeURIComponent(id)}${query(shown)}`)
    const marketing = found.json?.data?.attributes?.subscriptions?.email?.marketing
    if (found.is !== 'ok') return found
    // Who has unsubscribed or is suppressed would be subscribed again.
    if (marketing?.consent === 'UNSUBSCRIBED' || marketing?.suppression?.length > 0) return null
    const subscriptions = { email: { marketing: { consent: 'SUBSCRIBED' } } }
    const profiles = { data: [{ type: 'profile', id, attributes: { email, subscriptions } }] }
    // Klaviyo also adds the profile to the list: with double opt-in, once it has confirmed.
    return post(api, 'subscribe the profile', '/profile-subscription-bulk-create-jobs', {
      type: 'profile-subscription-bulk-create-job',
      attributes: { custom_source: 'waitlist', profiles },
      ...(list !== undefined && { relationships: { list: { data: { type: 'list', id: list } } } }),
    })
  },

  notify({ id, name, contact: { email, providerId, source }, code }, api) {
    // With an id, an address would be written into the profile.
    const person = providerId ? { id: providerId, attributes: {} } : { attributes: { email } }
    const attributes = {
      properties: { ...source, code },
      metric: { data: { type: 'metric', attributes: { name } } },
      profile: { data: { type: 'profile', ...person } },
      unique_id: id,
    }
    return post(api, 'create an event', '/events', { type: 'event', attributes })
  },

  async remove(email, api) {
    // No address that we take has a quote or a backslash.
    const filter = { filter: `equals(email,"${email}")`, 'fields[profile]': 'email' }
    const found = await api.get('find a profile', `/api/profiles${query(filter)}`)
    if (found.is !== 'ok' || !Array.isArray(found.json?.data)) return found
    const id = idOf(found.json.data[0]?.id)
    if (id === undefined) return { is: 'absent' }
    const profile = { data: { type: 'profile', id, attributes: {} } }
    const job = { type: 'data-privacy-deletion-job', attributes: { profile } }
    return post(api, 'ask for the deletion of a profile', '/data-privacy-deletion-jobs', job)
  },
}
