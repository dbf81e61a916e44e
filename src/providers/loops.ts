import { optional, required, word } from '../config/readers.ts'
import { base, contactIn, DAY, names, splitName, type Vendor } from './vendor.ts'

const settings = {
  LOOPS_API_KEY: required(word, 'API key.', 'Loops: Settings, API, Generate key.'),
  LOOPS_MAILING_LISTS: optional(names, 'Ids of mailing lists to add the contact to.', 'Loops: Settings, Lists.'),
  LOOPS_BASE_URL: base('https://app.loops.so/api'),
}

/** https://loops.so/docs/api-reference: a 409 means a known address, or an idempotency key that was used before. */
export const loops: Vendor<typeof settings> = {
  title: 'Loops',
  settings,
  // Not documented. Keys of this kind are commonly kept for a day.
  repeatable: DAY,
  namesEvents: true,
  takesFields: true,
  connect: ({ LOOPS_BASE_URL, LOOPS_API_KEY }) => ({
    base: LOOPS_BASE_URL,
    headers: { authorization: `Bearer ${LOOPS_API_KEY}` },
  }),
  check: () => ['/v1/api-key'],

  async create({ name, email }, { settings, fields, post }) {
    const { first, last } = splitName(name)
    const lists = settings.LOOPS_MAILING_LISTS
    const mailingLists = lists && Object.fromEntries(lists.map(id => [id, true]))
    const body = { ...fields, email, firstName: first, lastName: last, source: 'waitlist', mailingLists }
    const reply = await post('create a contact', '/v1/contacts/create', body)
    return reply.status === 409 ? { is: 'existing' } : contactIn('created', reply, reply.json?.id)
  },
  refusesAddress: ({ status, json }) => status === 400 && /^invalid email address\.?$/i.test(json?.message),

  async notify({ id, name, contact, code }, { post }) {
    const eventProperties = code === undefined ? contact.source : { ...contact.source, code }
    const body = { email: contact.email, eventName: name, eventProperties }
    const reply = await post('send an event', '/v1/events/send', body, { 'idempotency-key': id })
    return reply.status === 409 ? { ...reply, is: 'ok' } : reply
  },

  remove: (email, { post }) => post('delete a contact', '/v1/contacts/delete', { email }),
}
