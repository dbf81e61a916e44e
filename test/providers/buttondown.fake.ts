import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 'buttondown-key-of-the-test'
export const EMAIL = 'em_01hz8q5x6v7w8y9z0a1b2c3d4e'

export const buttondownSettings = (url: string) => ({
  BUTTONDOWN_API_KEY: KEY,
  BUTTONDOWN_BASE_URL: url,
  BUTTONDOWN_EMAIL_ID: EMAIL,
})

const ADDRESS = /^[a-zA-Z0-9.'_%+\-!]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$/
const UTM = ['utm_campaign', 'utm_medium', 'utm_source']
const MEMBERS = ['email_address', 'metadata', 'tags', 'type', 'notes', 'ip_address', 'referrer_url', ...UTM]

/** Everything that a subscriber can get. */
export const buttondownMore = {
  BUTTONDOWN_TAGS: 'early,friends',
  BUTTONDOWN_REFERRER_URL: 'https://example.com/launch/?from=waitlist',
}

const error = (status: number, code: string, detail: string): Said => ({ status, body: { code, detail, metadata: {} } })
const invalid = (place: string): Said => ({
  status: 422,
  body: { detail: [{ type: 'value_error', loc: ['body', 'input', place], msg: 'Not valid.' }] },
})

/**
 * As documented at https://docs.buttondown.com: a known address is a 400, a repeated idempotency key gets the first
 * answer again, and `daily` creations are let through, then a 400 points to the import.
 */
export function buttondownFake(daily = Number.POSITIVE_INFINITY): VendorFake {
  const subscribers = new Map<string, Record<string, unknown>>()
  const answered = new Map<string, Said>()
  const mails = new Map<string, number>()
  let ids = 0
  let creations = 0

  function keep(email: string, more: Record<string, unknown>, created: Date): Record<string, unknown> {
    const id = `sub_0${String(++ids).padStart(25, '0')}`
    const subscriber = {
      id,
      creation_date: created.toISOString(),
      email_address: email,
      type: 'unactivated',
      tags: [],
      metadata: {},
      referral_code: `r${ids}`,
      secondary_id: ids,
      source: 'api',
      utm_campaign: '',
      utm_medium: '',
      utm_source: '',
      ...more,
    }
    subscribers.set(email, subscriber)
    return subscriber
  }

  function create({ json = {}, headers }: Asked): Said {
    const unknown = Object.keys(json).find(member => !MEMBERS.includes(member))
    if (unknown !== undefined) return invalid(unknown)
    const { email_address: email, type, tags = [], metadata = {}, ...more } = json
    if (typeof email !== 'string' || !ADDRESS.test(email)) return invalid('email_address')
    if (email.startsWith('suspect')) return error(400, 'subscriber_blocked', 'Blocked by the firewall.')
    if (email.startsWith('blocked')) return error(400, 'email_blocked', 'This address is blocked.')
    if ((tags as string[]).includes('forbidden')) return error(400, 'tag_invalid', 'Your plan has no tags.')
    const known = subscribers.get(email)
    if (known !== undefined) {
      if (!/^(add|overwrite)$/.test(headers['x-buttondown-collision-behavior'] ?? 'no_op')) {
        return error(400, 'email_already_exists', `${email} is already subscribed.`)
      }
      return { status: 201, body: Object.assign(known, { tags, metadata }) }
    }
    if (++creations > daily) return error(400, 'invalid_input', 'Use POST /v1/imports to add subscribers in bulk.')
    const body = keep(email, { ...more, tags, metadata, ...(type ? { type } : {}) }, new Date())
    return { status: 201, body }
  }

  const find = (idOrEmail: string) =>
    subscribers.get(idOrEmail) ?? [...subscribers.values()].find(({ id }) => id === idOrEmail)

  /** What is not sent stays; tags are replaced. */
  function update(subscriber: string, { json }: Asked): Said {
    const found = find(subscriber)
    if (found === undefined) return error(404, 'not_found', 'Not found.')
    const unknown = Object.keys(json).find(member => !['metadata', 'tags', 'type'].includes(member))
    if (unknown !== undefined) return invalid(unknown)
    return { status: 200, body: Object.assign(found, json) }
  }

  function remove(subscriber: string): Said {
    const found = find(subscriber)
    if (found === undefined) return error(404, 'not_found', 'Not found.')
    subscribers.delete(String(found.email_address))
    return { status: 204 }
  }

  function send(subscriber: string, mail: string): Said {
    const found = find(subscriber)
    if (found === undefined || mail !== EMAIL) return error(404, 'not_found', 'Not found.')
    const email = String(found.email_address)
    mails.set(email, (mails.get(email) ?? 0) + 1)
    return { status: 200, body: {} }
  }

  function answer(asked: Asked): Said {
    const { method, path, segments } = asked
    const [, version, what, subscriber = '', emails, mail = ''] = segments
    if (version !== 'v1') return error(404, 'not_found', 'Not found.')
    if (method === 'GET' && path === '/v1/accounts/me') {
      return { status: 200, body: { username: 'example', email_address: 'owner@example.com' } }
    }
    if (method === 'GET' && what === 'emails' && subscriber === EMAIL) {
      return { status: 200, body: { id: EMAIL, subject: 'Welcome', status: 'draft', body: 'Welcome! '.repeat(10_000) } }
    }
    if (method === 'GET' && path === '/v1/tags') return { status: 200, body: { results: [], count: 0 } }
    if (what !== 'subscribers') return error(404, 'not_found', 'Not found.')
    if (method === 'POST' && path === '/v1/subscribers') return create(asked)
    if (method === 'POST' && emails === 'emails') return send(subscriber, mail)
    if (method === 'PATCH') return update(subscriber, asked)
    if (method === 'DELETE') return remove(subscriber)
    const found = method === 'GET' ? find(subscriber) : undefined
    return found === undefined ? error(404, 'not_found', 'Not found.') : { status: 200, body: found }
  }

  return {
    answer(asked) {
      if (asked.headers.authorization !== `Token ${KEY}`) return error(401, 'unauthorized', 'Invalid token.')
      const key = asked.headers['x-idempotency-key']
      if (key === undefined) return answer(asked)
      if (key.length > 200) return error(400, 'invalid_input', 'The key is too long.')
      const said = answered.get(key) ?? answer(asked)
      answered.set(key, said)
      return said
    },
    had(email) {
      const more = { type: 'unsubscribed', metadata: { name: 'Old' }, tags: ['customers', 'early'] }
      keep(email, more, new Date('2020-01-01'))
    },
    joined(email) {
      const tags = subscribers.get(email)?.tags as string[] | undefined
      return ['early', 'friends'].every(tag => tags?.includes(tag))
    },
    kept: email => subscribers.get(email),
    count: email => (subscribers.has(email) ? 1 : 0),
    starts: email => mails.get(email) ?? 0,
  }
}
