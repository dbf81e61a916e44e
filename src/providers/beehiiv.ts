import { optional, required, withDefault, word, yesOrNo } from '../config/readers.ts'
import { base, contactIn, names, type Vendor } from './vendor.ts'

const settings = {
  BEEHIIV_API_KEY: required(word, 'API key.', 'beehiiv: Settings, API, Create new API key.'),
  BEEHIIV_PUBLICATION_ID: required(word, 'Publication (pub_…).', 'beehiiv: Settings, API, Publication ID (API V2).'),
  BEEHIIV_TAGS: optional(names, 'Tags to give to the contact; new ones are made.', 'beehiiv: Audience, Tags.'),
  BEEHIIV_SEND_WELCOME_EMAIL: withDefault(yesOrNo, 'false', 'Whether the welcome email of the publication is sent.'),
  BEEHIIV_AUTOMATION_ID: optional(word, 'Automation to start (aut_…).', 'beehiiv: Automations; the id in its address.'),
  BEEHIIV_BASE_URL: base('https://api.beehiiv.com/v2'),
}

const byEmail = (email: string): string => `/subscriptions/by_email/${encodeURIComponent(email)}`

/**
 * https://developers.beehiiv.com: what a second creation of an address does is not documented, so it is looked up first.
 * Neither is any code of an error, so none can mean the address; beehiiv tries it later, and then calls it invalid there.
 */
export const beehiiv: Vendor<typeof settings> = {
  title: 'beehiiv',
  settings,
  repeatable: 0,
  namesEvents: false,
  connect: ({ BEEHIIV_BASE_URL, BEEHIIV_PUBLICATION_ID, BEEHIIV_API_KEY }) => ({
    base: `${BEEHIIV_BASE_URL}/publications/${encodeURIComponent(BEEHIIV_PUBLICATION_ID)}`,
    headers: { authorization: `Bearer ${BEEHIIV_API_KEY}` },
  }),
  check: ({ BEEHIIV_AUTOMATION_ID: id }) => [
    '',
    ...(id === undefined ? [] : [`/automations/${encodeURIComponent(id)}`]),
  ],

  async create({ email }, { settings, get, post }) {
    const found = await get('find a subscription', byEmail(email))
    if (found.status !== 404) return contactIn('existing', found, found.json?.data?.id)
    const body = { email, send_welcome_email: settings.BEEHIIV_SEND_WELCOME_EMAIL || undefined }
    const reply = await post('create a subscription', '/subscriptions', body)
    return contactIn('created', reply, reply.json?.data?.id)
  },

  async complete({ providerId }, { settings: { BEEHIIV_TAGS: tags }, post }) {
    return tags === undefined ? null : post('add tags', `/subscriptions/${providerId}/tags`, { tags })
  },

  notifies: ({ BEEHIIV_AUTOMATION_ID: id }) => id !== undefined,
  notify({ contact: { email, providerId } }, { settings, post }) {
    const path = `/automations/${encodeURIComponent(settings.BEEHIIV_AUTOMATION_ID!)}/journeys`
    return post('start the automation', path, providerId === undefined ? { email } : { subscription_id: providerId })
  },

  async remove(email, { get, send }) {
    const found = await get('find a subscription', byEmail(email))
    const { id } = found.json?.data ?? {}
    if (found.is !== 'ok' || id === undefined) return found
    const path = `/subscriptions/${encodeURIComponent(String(id))}`
    return send({ action: 'delete a subscription', method: 'DELETE', path })
  },
}
