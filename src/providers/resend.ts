import { optional, required, word } from '../config/readers.ts'
import { base, contactIn, names, splitName, type Vendor } from './vendor.ts'

const settings = {
  RESEND_API_KEY: required(word, 'API key with full access.', 'Resend: API Keys, Create API Key, Full access.'),
  RESEND_SEGMENT_IDS: optional(names, 'Segments to add the contact to.', 'Resend: Audience, Segments.'),
  RESEND_BASE_URL: base('https://api.resend.com'),
}

const pathOf = (email: string): string => `/contacts/${encodeURIComponent(email)}`

/**
 * https://resend.com/docs/api-reference/contacts and /events. What a second creation of an address does is not documented,
 * so it is looked up first. Segments are sent as objects, as the official clients do.
 */
export const resend: Vendor<typeof settings> = {
  title: 'Resend',
  settings,
  repeatable: 0,
  namesEvents: true,
  takesFields: true,
  connect: ({ RESEND_BASE_URL, RESEND_API_KEY }) => ({
    base: RESEND_BASE_URL,
    headers: { authorization: `Bearer ${RESEND_API_KEY}` },
  }),
  // Both refuse a key that may only send mail.
  check: ({ RESEND_SEGMENT_IDS: segments }) => segments?.map(id => `/segments/${id}`) ?? ['/contacts?limit=1'],

  async create({ name, email }, { settings, fields: properties, get, post }) {
    const found = await get('find a contact', pathOf(email))
    if (found.status !== 404) return contactIn('existing', found, found.json?.id)
    const { first, last } = splitName(name)
    const segments = settings.RESEND_SEGMENT_IDS?.map(id => ({ id }))
    const body = { email, first_name: first, last_name: last, properties, segments }
    const reply = await post('create a contact', '/contacts', body)
    return contactIn('created', reply, reply.json?.id)
  },
  refusesAddress: ({ status, json }) =>
    (status === 400 || status === 422) && /^(?:Invalid|The) `email` (?:field|must)/.test(json?.message),

  notify({ name, contact: { email, providerId, source }, code }, { post }) {
    const payload = code === undefined ? source : { ...source, code }
    const recipient = providerId === undefined ? { email } : { contact_id: providerId }
    return post('send an event', '/events/send', { event: name, ...recipient, payload })
  },

  remove: (email, { send }) => send({ action: 'delete a contact', method: 'DELETE', path: pathOf(email) }),
}
