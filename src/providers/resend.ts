import { optional, required, type ValuesOf, word, words } from '../config/kinds.ts'
import { idAt, memberAt, textAt } from '../outbound/reply.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { base, type Connect, type Fields, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID, isYoungerThanSignup, splitName } from './vendor-client.ts'

const settings = {
  RESEND_API_KEY: required(word, 'API key with full access.', 'Resend: API Keys, Create API Key, Full access.'),
  RESEND_SEGMENT_IDS: optional(words, 'Segments to add the contact to.', 'Resend: Audience, Segments.'),
  RESEND_BASE_URL: base('https://api.resend.com'),
}
type Settings = ValuesOf<typeof settings>

export const resend: Vendor<typeof settings> = {
  title: 'Resend',
  settings,
  rate: { calls: 5, per: 1_000, connections: 5 },
  promises: {
    newness: 'best effort',
    scope: 'account',
    recognisesOwn: true,
    repeatable: 0,
    namesEvents: true,
    removal: 'at once',
  },
  takesFields: true,
  client,
}

/**
 * https://resend.com/docs/api-reference/contacts and /events. It is not documented what a second creation of an address
 * does, so the address is looked up first. Segments are sent as objects, as the official clients do.
 */
function client(settings: Settings, connect: Connect, fields: Fields): VendorClient {
  const { call, get, post } = connect({
    base: settings.RESEND_BASE_URL,
    headers: { authorization: `Bearer ${settings.RESEND_API_KEY}` },
    waitFields: ['retry-after', 'ratelimit-reset'],
  })
  const { RESEND_SEGMENT_IDS: segments } = settings

  return {
    async createContact(contact, _doubt, attempt) {
      const { name, email } = contact
      const found = await get('find a contact', `/contacts/${encodeURIComponent(email)}`, attempt)
      const foundId = found.id('id')
      if (found.status === 200 && foundId !== undefined) {
        const ours = isYoungerThanSignup(found.text('created_at'), contact)
        return { is: 'existing', providerId: foundId, ours }
      }
      // What it does not take for an address, it takes for an id. The signup stays, in case this is about every address.
      if (isNoId(found)) return { is: 'unreached', why: found.summary, alone: true }
      // Any other 404 means that RESEND_BASE_URL is wrong.
      if (!isNotFound(found)) return refusedOr(found)

      const { first, last } = splitName(name)
      const body = {
        email,
        first_name: first,
        last_name: last,
        properties: Object.keys(fields).length === 0 ? undefined : fields,
        segments: segments?.map(id => ({ id })),
      }
      const reply = await post('create a contact', '/contacts', body, attempt)
      const providerId = reply.id('id')
      if (reply.ok && providerId !== undefined) return { is: 'created', providerId }
      return refusedOr(reply)
    },

    join:
      segments &&
      (async ({ providerId, email }, attempt) => {
        const path = `/contacts/${encodeURIComponent(providerId ?? email)}/segments`
        // It is not documented what adding to a segment for a second time does.
        const listed = await get('list the segments of a contact', path, attempt, { limit: '100' })
        const data = listed.list('data')
        if (data === undefined) return listed.failure
        const joined = new Set(data.map(each => idAt(each, 'id')))
        for (const id of segments.filter(each => !joined.has(each))) {
          const to = 'add a contact to a segment'
          const reply = await call({ to, method: 'POST', path: `${path}/${encodeURIComponent(id)}` }, attempt)
          // The official clients expect `id`, where the OpenAPI document has `segment_id`.
          const added = reply.id('id') ?? reply.id('segment_id')
          if (!reply.ok || added === undefined) return reply.refusal
        }
        return null
      }),

    async automation({ name, contact, code }, attempt) {
      const { providerId, email, source } = contact
      const payload = code === undefined ? source : { ...source, code }
      const whom = providerId === undefined ? { email } : { contact_id: providerId }
      const reply = await post('send an event', '/events/send', { event: name, ...whom, payload }, attempt)
      return reply.deliveredIf(reply.ok && reply.text('event') !== undefined)
    },

    async remove(email, attempt) {
      const path = `/contacts/${encodeURIComponent(email)}`
      const reply = await call({ to: 'delete a contact', method: 'DELETE', path }, attempt)
      if (reply.status === 200 && reply.at('deleted') === true) return { is: 'removed' }
      if (isNoId(reply)) return { is: 'by hand', how: 'delete the contact in Resend, under Audience' }
      return isNotFound(reply) ? { is: 'absent' } : reply.failure
    },

    /** Each of these calls refuses a key that may only send mail. */
    async check(attempt) {
      for (const id of segments ?? []) {
        const reply = await get(`check the segment ${id}`, `/segments/${encodeURIComponent(id)}`, attempt)
        if (reply.status !== 200 || reply.at('object') !== 'segment') return reply.failure
      }
      if (segments !== undefined) return null
      const reply = await get('check the API key', '/contacts', attempt, { limit: '1' })
      return reply.list('data') === undefined ? reply.failure : null
    },
  }
}

const isNotFound = ({ status, json }: Answer): boolean => status === 404 && memberAt(json, 'name') === 'not_found'

const isNoId = ({ status, json }: Answer): boolean =>
  status === 422 && /^The `id` must be a valid UUID\b/.test(textAt(json, 'message') ?? '')

/**
 * https://resend.com/docs/api-reference/errors: the message of a `validation_error` names the field. Properties have names
 * too, perhaps one with "email" in it, so only what is said of the field itself counts.
 */
function refusedOr(reply: Answer): Creation {
  const { status, json } = reply
  const isInvalid = (status === 400 || status === 422) && memberAt(json, 'name') === 'validation_error'
  const isOfEmail = /^(?:Invalid `email` field|The `email` (?:field is invalid|must be a valid email))\b/
  if (!isInvalid || !isOfEmail.test(textAt(json, 'message') ?? '')) return reply.failure
  return INVALID
}
