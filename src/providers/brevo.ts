import { optional, required, word } from '../config/readers.ts'
import { base, contactIn, numbers, splitName, type Vendor } from './vendor.ts'

const settings = {
  BREVO_API_KEY: required(word, 'API key.', 'Brevo: Settings, SMTP & API, API keys.'),
  BREVO_LIST_IDS: optional(numbers, 'Lists to add the contact to.', 'Brevo: Contacts, Lists; the number after #.'),
  BREVO_BASE_URL: base('https://api.brevo.com'),
}

/**
 * https://developers.brevo.com/reference: without `updateEnabled` a known address is refused, and nothing about it
 * changes, not even its lists. Attributes that the account does not have are ignored.
 */
export const brevo: Vendor<typeof settings> = {
  title: 'Brevo',
  settings,
  repeatable: 0,
  namesEvents: true,
  connect: ({ BREVO_BASE_URL, BREVO_API_KEY }) => ({ base: BREVO_BASE_URL, headers: { 'api-key': BREVO_API_KEY } }),
  // What is not under /v3/contacts may be asked 100 times an hour only.
  check: ({ BREVO_LIST_IDS: lists = [] }) => [
    '/v3/contacts/attributes',
    ...lists.map(list => `/v3/contacts/lists/${list}`),
  ],

  async create({ name, email }, { settings, post }) {
    const { first, last } = splitName(name)
    const attributes = { FIRSTNAME: first, LASTNAME: last }
    const body = { email, attributes, listIds: settings.BREVO_LIST_IDS, updateEnabled: false }
    const reply = await post('create a contact', '/v3/contacts', body)
    // The metadata is newer than the code, and has been seen with a different one.
    const isKnown = reply.json?.code === 'duplicate_parameter' || reply.json?.metadata?.duplicate_identifiers
    return reply.status === 400 && isKnown ? { is: 'existing' } : contactIn('created', reply, reply.json?.id)
  },
  // The code is that of every wrong parameter, such as our lists; only these words mean the address.
  refusesAddress: ({ status, json }) => status === 400 && /^invalid email address\.?$/i.test(json?.message),

  notify({ name, contact: { email, providerId, source }, code }, { post }) {
    const body = {
      // Letters, digits, - and _ are allowed.
      event_name: name.replaceAll(/[^A-Za-z0-9_-]/g, '_'),
      // By its address, a contact that was deleted since would be created anew; not so by its id.
      identifiers: providerId === undefined ? { email_id: email } : { contact_id: Number(providerId) },
      event_properties: code === undefined ? source : { ...source, code },
    }
    return post('send an event', '/v3/events', body)
  },

  remove(email, { send }) {
    const path = `/v3/contacts/${encodeURIComponent(email)}?identifierType=email_id`
    return send({ action: 'delete a contact', method: 'DELETE', path })
  },
}
