import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, object, taking, text, vendorApi } from '../harness/vendor-api.ts'

const KEY = 'buttondown-key-of-the-test'
export const EMAIL = 'em_01hz8q5x6v7w8y9z0a1b2c3d4e'
const ADDRESS = /^[a-zA-Z0-9.'_%+\-!]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$/

export const buttondownSettings = (url: string) => ({
  BUTTONDOWN_API_KEY: KEY,
  BUTTONDOWN_BASE_URL: url,
  BUTTONDOWN_EMAIL_ID: EMAIL,
})
/** Everything that a subscriber can get. */
export const buttondownMore = {
  BUTTONDOWN_TAGS: 'early,friends',
  BUTTONDOWN_REFERRER_URL: 'https://example.com/launch/?from=waitlist',
}

/*
 * Facts of https://github.com/buttondown/openapi (MIT), document 1.0.0 of 2026-08, as far as we send or read it. Unknown
 * members are refused.
 */
const upTo300 = { type: 'string', maxLength: 300 }
const ofSubscribers = { tags: listOf(text), metadata: object(), referrer_url: text }
const creation = exactly(
  { email_address: { type: 'string', maxLength: 254 } },
  {
    ...ofSubscribers,
    type: { enum: ['regular', 'unactivated', null] },
    utm_campaign: upTo300,
    utm_medium: upTo300,
    utm_source: upTo300,
  },
)
export const errorCodes = [
  'currency_mismatch',
  'email_already_exists',
  'email_blocked',
  'email_empty',
  'email_invalid',
  'invalid_input',
  'ip_address_spammy',
  'metadata_invalid',
  'newsletter_not_accepting_subscribers',
  'payment_failed',
  'promo_code_invalid',
  'rate_limited',
  'subscriber_already_exists',
  'subscriber_blocked',
  'subscriber_id_invalid',
  'subscriber_suppressed',
  'tag_invalid',
] as const

const error = (status: number, code: string, detail: string): Said => ({ status, body: { code, detail, metadata: {} } })
const invalid = (place: string): Said => ({
  status: 422,
  body: { detail: [{ type: 'value_error', loc: ['body', 'input', place], msg: 'Not valid.' }] },
})
const notFound = error(404, 'not_found', 'Not found.')

/**
 * As documented at https://docs.buttondown.com: a known address is a 400, a repeated idempotency key gets the first
 * answer again, and `daily` creations are let through, then a 400 points to the import.
 */
export function buttondownFake(daily = Number.POSITIVE_INFINITY): VendorFake {
  const { contacts, find: findBy, start, facts } = contactBook<Record<string, unknown>>()
  const answered = new Map<string, Said>()
  let ids = 0
  let creations = 0

  const find = (idOrEmail = '') => contacts.get(idOrEmail) ?? findBy(({ id }) => id === idOrEmail)
  const shown = (found: object | undefined): Said => (found === undefined ? notFound : { status: 200, body: found })

  function keep(email: string, more: Record<string, unknown>, created: Date): Record<string, unknown> {
    const id = `sub_0${String(++ids).padStart(25, '0')}`
    const none = { type: 'unactivated', tags: [], metadata: {} }
    const kept = { id, creation_date: created.toISOString(), email_address: email, ...none, ...more }
    contacts.set(email, kept)
    return kept
  }

  function create({
    json: { email_address: email, type, tags = [], metadata = {}, ...more },
    headers,
  }: Received): Said {
    if (!ADDRESS.test(email)) return invalid('email_address')
    if (email.startsWith('blocked')) return error(400, 'email_blocked', 'This address is blocked.')
    if (tags.includes('forbidden')) return error(400, 'tag_invalid', 'Your plan has no tags.')
    const known = contacts.get(email)
    if (known !== undefined) {
      if (!/^(add|overwrite)$/.test(headers['x-buttondown-collision-behavior'] ?? 'no_op')) {
        return error(400, 'email_already_exists', `${email} is already subscribed.`)
      }
      return { status: 201, body: Object.assign(known, { tags, metadata }) }
    }
    if (++creations > daily) return error(400, 'invalid_input', 'Use POST /v1/imports to add subscribers in bulk.')
    return { status: 201, body: keep(email, { ...more, tags, metadata, ...(type ? { type } : {}) }, new Date()) }
  }

  function remove(subscriber: string | undefined): Said {
    const found = find(subscriber)
    return found !== undefined && contacts.delete(String(found.email_address)) ? { status: 204 } : notFound
  }

  function send(subscriber: string | undefined, mail: string | undefined, key: string | undefined): Said {
    const found = find(subscriber)
    const known = answered.get(key ?? '')
    if (known !== undefined) return known
    if (found === undefined || mail !== EMAIL) return notFound
    start(String(found.email_address))
    const said = { status: 200, body: {} }
    if (key !== undefined) answered.set(key, said)
    return said
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers.authorization !== `Token ${KEY}`
          ? error(401, 'unauthorized', 'Invalid token.')
          : headers['x-api-version'] !== '2026-04-01' || (headers['x-idempotency-key'] ?? '').length > 200
            ? error(400, 'invalid_input', 'A header is not valid.')
            : undefined,
      routes: {
        'POST /v1/subscribers': taking(creation, create),
        'GET /v1/subscribers/{id_or_email}': ({ at }) => shown(find(at.id_or_email)),
        // What is not sent stays; tags are replaced.
        'PATCH /v1/subscribers/{id_or_email}': taking(exactly({}, { tags: listOf(text) }), ({ at, json }) => {
          const found = find(at.id_or_email)
          return shown(found && Object.assign(found, json))
        }),
        'DELETE /v1/subscribers/{id_or_email}': ({ at }) => remove(at.id_or_email),
        'POST /v1/subscribers/{id_or_email}/emails/{email_id}': ({ at, headers }) =>
          send(at.id_or_email, at.email_id, headers['x-idempotency-key']),
        'GET /v1/emails/{id}': ({ at }) =>
          shown(at.id === EMAIL ? { id: EMAIL, body: 'Welcome! '.repeat(10_000) } : undefined),
        'GET /v1/tags': () => ({ status: 200, body: { results: [], count: 0 } }),
        'GET /v1/accounts/me': () => ({
          status: 200,
          body: { username: 'example', email_address: 'owner@example.com' },
        }),
      },
    }),
    had(email) {
      const more = { type: 'unsubscribed', metadata: { name: 'Old' }, tags: ['customers', 'early'] }
      keep(email, more, new Date('2020-01-01'))
    },
    joined(email) {
      const tags = contacts.get(email)?.tags as string[] | undefined
      return ['early', 'friends'].every(tag => tags?.includes(tag))
    },
  }
}
