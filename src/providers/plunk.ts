import { required, word } from '../config/readers.ts'
import { base, contactIn, DAY, query, splitName, type Vendor } from './vendor.ts'

const settings = {
  PLUNK_SECRET_KEY: required(word, 'Secret key (sk_…), for contacts.', 'Plunk: Project settings, API keys.'),
  PLUNK_PUBLIC_KEY: required(word, 'Public key (pk_…), for events.', 'Plunk: Project settings, API keys.'),
  PLUNK_BASE_URL: base('https://next-api.useplunk.com'),
}

/** Contacts that a search returns. */
const PAGE = 100

/**
 * https://docs.useplunk.com/api-reference and the source, https://github.com/useplunk/plunk. A creation is an upsert that
 * would change an existing contact, so the address is looked up first. Events need the public key.
 */
export const plunk: Vendor<typeof settings> = {
  title: 'Plunk',
  settings,
  repeatable: DAY,
  namesEvents: true,
  connect: ({ PLUNK_BASE_URL, PLUNK_SECRET_KEY }) => ({
    base: PLUNK_BASE_URL,
    headers: { authorization: `Bearer ${PLUNK_SECRET_KEY}` },
  }),
  check: () => ['/contacts?limit=1'],

  async create({ name, email, source }, { post, send }) {
    const body = { emails: [email] }
    const lookup = { action: 'look an address up', method: 'POST', path: '/contacts/lookup', body, safe: true } as const
    const reply = await send(lookup)
    if (reply.json?.found?.[0] === email) return { is: 'existing' }
    if (reply.json?.notFound?.[0] !== email) return reply

    const { first, last } = splitName(name)
    const data = { firstName: first, lastName: last, ...source }
    const made = await post('create a contact', '/contacts', { email, data })
    // If it is not new, another tool added it after the look-up.
    return contactIn(made.json?._meta?.isNew === false ? 'existing' : 'created', made, made.json?.id)
  },
  refusesAddress: ({ status, json }) => status === 422 && json?.error?.errors?.[0]?.field === 'email',

  async notify({ id, name, contact: { email }, code }, { settings, post }) {
    const headers = { authorization: `Bearer ${settings.PLUNK_PUBLIC_KEY}`, 'idempotency-key': id }
    const body = { event: name, email, ...(code !== undefined && { data: { code } }) }
    const reply = await post('track an event', '/v1/track', body, headers)
    // Without a status the first request is still under way; Plunk itself repeats what ended with a 5xx.
    const isUsed = reply.status === 409 && reply.json?.error?.code === 'IDEMPOTENCY_KEY_REUSED'
    if (!isUsed) return reply
    return { ...reply, is: reply.json.error.details?.originalStatusCode ? 'ok' : 'in doubt' }
  },

  /** The search also finds addresses that contain this one. */
  async remove(email, { get, send }) {
    const reply = await get('find a contact', `/contacts${query({ search: email, limit: String(PAGE) })}`)
    const all: unknown = reply.json?.data
    if (reply.is !== 'ok' || !Array.isArray(all)) return reply
    const id: unknown = all.find(each => each?.email === email)?.id
    if (id !== undefined) {
      return send({ action: 'delete a contact', method: 'DELETE', path: `/contacts/${encodeURIComponent(String(id))}` })
    }
    if (all.length < PAGE) return { is: 'absent' }
    return { is: 'by hand', how: 'delete the contact in Plunk, under Contacts' }
  },
}
