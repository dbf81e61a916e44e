import { optional, required, word } from '../config/readers.ts'
import { base, contactIn, forEach, numbers, splitName, type Vendor } from './vendor.ts'

const settings = {
  HUBSPOT_TOKEN: required(
    word,
    'Service key with the scopes crm.objects.contacts.read and .write; for lists crm.lists.read and .write, too.',
    'HubSpot: Development, Keys, Service keys, Create service key.',
  ),
  HUBSPOT_LIST_IDS: optional(
    numbers,
    'Static lists (segments) to add the contact to.',
    'HubSpot: CRM, Segments, Details of the segment; the ILS id.',
  ),
  HUBSPOT_BASE_URL: base('https://api.hubapi.com'),
}

/** Every path names the API version that it was written for. */
const VERSION = '2026-09'
const CONTACTS = `/crm/objects/${VERSION}/contacts`
const LISTS = `/crm/lists/${VERSION}`

/**
 * https://developers.hubspot.com/docs/api-reference: contacts and lists. A 409 means a known address; its message contains
 * the id. Fields are set on creation, so that a workflow can enrol on them.
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
  check: ({ HUBSPOT_LIST_IDS: lists = [] }) => [
    `${CONTACTS}?limit=1&properties=createdate`,
    ...lists.map(list => `${LISTS}/${list}`),
  ],

  async create({ name, email }, { fields, post }) {
    const { first, last } = splitName(name)
    const properties = { ...fields, email, firstname: first, lastname: last }
    const reply = await post('create a contact', CONTACTS, { properties })
    if (reply.status !== 409) return contactIn('created', reply, reply.json?.id)
    return { is: 'existing', providerId: /Existing ID:\s*(\d+)/i.exec(reply.json?.message)?.[1] }
  },
  // The message has a JSON array of the invalid properties.
  refusesAddress: ({ status, json }) => status === 400 && /\bINVALID_EMAIL\b/.test(json?.message),

  async complete({ providerId }, { settings, send }) {
    if (providerId === undefined) return null
    return forEach(settings.HUBSPOT_LIST_IDS ?? [], list => {
      const path = `${LISTS}/${list}/memberships/add`
      return send({ action: `add to list ${list}`, method: 'PUT', path, body: [providerId] })
    })
  },

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
