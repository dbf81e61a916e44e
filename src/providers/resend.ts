import { assignments, optional, required, type ValuesOf, word, words } from '../config/kinds.ts'
import { idAt, memberAt, textAt } from '../outbound/reply.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { base, type Connect, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID, isYoungerThanSignup, misconfigured, splitName } from './vendor-client.ts'

const settings = {
  RESEND_API_KEY: required(word, 'API key with full access.', 'Resend: API Keys, Create API Key, Full access.'),
  RESEND_SEGMENT_IDS: optional(words, 'Segments to add the contact to.', 'Resend: Audience, Segments.'),
  RESEND_TOPIC_IDS: optional(words, 'Topics that the contact opts in to.', 'Resend: Audience, Topics.'),
  RESEND_PROPERTIES: optional(
    assignments,
    'Properties of type string to set on a new contact: name=value, separated by commas.',
    'Resend: Audience, Properties; make them there first.',
  ),
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
  joins: ['RESEND_SEGMENT_IDS'],
  client,
}

/**
 * https://resend.com/docs/api-reference/contacts and /events. It is not documented what a second creation of an address
 * does, so the address is looked up first. Segments are sent as objects, as the official clients do.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { call, get, post } = connect({
    base: settings.RESEND_BASE_URL,
    headers: { authorization: `Bearer ${settings.RESEND_API_KEY}` },
    waitFields: ['retry-after', 'ratelimit-reset'],
  })
  const { RESEND_SEGMENT_IDS: segments, RESEND_TOPIC_IDS: topics, RESEND_PROPERTIES: properties } = settings
  /** What the check asks for by its id. */
  const named = [
    ...(segments ?? []).map(id => ({ object: 'segment', id })),
    ...(topics ?? []).map(id => ({ object: 'topic', id })),
  ]

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
        properties,
        segments: segments?.map(id => ({ id })),
        topics: topics?.map(id => ({ id, subscription: 'opt_in' })),
      }
      const reply = await post('create a contact', '/contacts', body, attempt)
      const providerId = reply.id('id')
      if (reply.ok && providerId !== undefined) return { is: 'created', providerId }
      return refusedOr(reply)
    },

    // Topics are left alone: an opt-out that somebody chose looks like one by default.
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
      for (const { object, id } of named) {
        const reply = await get(`check the ${object} ${id}`, `/${object}s/${encodeURIComponent(id)}`, attempt)
        if (reply.status !== 200 || reply.at('object') !== object) return reply.failure
      }
      if (named.length > 0 && properties === undefined) return null
      const [what, path, limit] =
        properties === undefined ? ['the API key', '/contacts', '1'] : ['the properties', '/contact-properties', '100']
      const reply = await get(`check ${what}`, path, attempt, { limit })
      const data = reply.list('data')
      if (data === undefined) return reply.failure
      const isThere = (name: string) =>
        data.some(each => memberAt(each, 'key') === name && memberAt(each, 'type') === 'string')
      const missing = Object.keys(properties ?? {}).find(name => !isThere(name))
      if (missing === undefined || reply.at('has_more') === true) return null
      return misconfigured(`check the properties: there is no ${missing} of type string`)
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
