import { required, word } from '../config/readers.ts'
import { base, contactIn, splitName, type Vendor } from './vendor.ts'

const settings = {
  HUBSPOT_TOKEN: required(
    word,
    'Service key with the scopes crm.objects.contacts.read and .write.',
    'HubSpot: Development, Keys, Service keys, Create service key.',
  ),
  HUBSPOT_BASE_URL: base('https://api.hubapi.com'),
}

/** Paths name the API version that they were written for. */
const CONTACTS = '/crm/objects/2026-09/contacts'

/**
 * https://developers.hubspot.com/docs/api-reference: contacts. A 409 means a known address. Fields are set on creation, so that a workflow can enrol on them.
 */
export const hubspot: Vendor<typeof settings> = {
  title: 'HubSpot',
  settings,
  repeatable: 0,
  namesEvents: false,
  takesFields: true,
  connect: ({ HUBSPOT_BASE_URL, HUBSPOT_TOKEN }) => ({
    base: HUBSPOT_BASE_URL,
    headers: { authorization: `Bearer ${HUBSPOT_TOKEN}` },
  }),
  check: () => [`${CONTACTS}?limit=1&properties=createdate`],

  async create({ name, email }, { fields, post }) {
    const { first, last } = splitName(name)
    const properties = { ...fields, email, firstname: first, lastname: last }
    const reply = await post('create a contact', CONTACTS, { properties })
    return reply.status === 409 ? { is: 'existing' } : contactIn('created', reply, reply.json?.id)
  },
  // The message has a JSON array of the invalid properties.
  refusesAddress: ({ status, json }) => status === 400 && /\bINVALID_EMAIL\b/.test(json?.message),

  async remove(email, { get, post }) {
    const path = `${CONTACTS}/${encodeURIComponent(email)}?properties=email&idProperty=email`
    const found = await get('find a contact', path)
    const { id: objectId, properties } = found.json ?? {}
    if (found.is !== 'ok' || objectId === undefined) return found
    if (properties?.email?.toLowerCase() !== email) {
      const how =
        'look for the address in HubSpot, under Contacts: it is a secondary one of a contact with another address'
      return { is: 'by hand', how }
    }
    // By its address, one who is gone since would be blocked for good.
    return post('delete a contact permanently', `${CONTACTS}/gdpr-delete`, { objectId })
  },
}
