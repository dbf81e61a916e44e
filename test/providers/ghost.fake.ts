import { createHmac } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, object, taking, text, vendorApi } from '../harness/vendor-api.ts'

const KEY_ID = 'a1'.repeat(12)
const SECRET = 'b2'.repeat(32)
export const anotherSecret = `${KEY_ID}:${'0'.repeat(64)}`
export const ghostSettings = (url: string) => ({ GHOST_BASE_URL: url, GHOST_ADMIN_API_KEY: `${KEY_ID}:${SECRET}` })

const hex = (number: number) => number.toString(16).padStart(24, '0')
export const DEFAULT = hex(0xd0)
export const EARLY = hex(0xd1)
export const ARCHIVED = hex(0xd2)

export interface GhostFake extends VendorFake {
  /** Status by id. */
  readonly newsletters: Map<string, string>
  /** Who was sent a mail, and of which type. */
  readonly mailed: string[]
  /** Makes every mail fail. */
  mail: boolean
  /** Seconds by which the server's clock is ahead of ours. */
  ahead: number
}

interface Named {
  readonly id: string
  readonly name: string
}
interface Member extends Named {
  readonly email: string
  readonly note: string | null
  labels: readonly Named[]
  newsletters: readonly Named[]
}

/*
 * Facts of Ghost 6.65.0 (MIT), as far as we send or read it: what its schemas of the Admin API take, and the shape of what a
 * server of that version answered to them. What it does not know is dropped there, and is a mistake here.
 */
const upTo = (maxLength: number) => ({ type: 'string', maxLength })
/** By name or id; a text is a name. */
const byName = listOf({
  anyOf: [{ ...object({}, { id: upTo(24), name: upTo(191) }), minProperties: 1 }, upTo(191)],
})
const sent = { note: upTo(2_000), labels: byName, newsletters: byName }
const one = (item: object) => exactly({ members: { ...listOf(item), minItems: 1, maxItems: 1 } })
const name = { ...upTo(191), pattern: '^([^,]|$)' }

const notSaved = (context: string, more: object = {}) => ({
  message: 'Validation error, cannot save member.',
  context,
  type: 'ValidationError',
  ...more,
})
const unauthorized = (message: string, code = 'INVALID_JWT') => ({ message, type: 'UnauthorizedError', code })

/** The answers that tell one mistake from another, as that server gave them. */
export const said = {
  known: notSaved('Member already exists. Attempting to add member with existing email address', { property: 'email' }),
  invalid: notSaved('Invalid Email', { property: 'email' }),
  tooLong: notSaved('Validation failed for email.', { property: 'email' }),
  comma: notSaved('Validation failed for name.', { property: 'name' }),
  noNewsletter: notSaved('Value in [newsletters.name] cannot be blank. newsletters.name'),
  noMail: { message: 'Error sending email!', context: 'connect ECONNREFUSED', type: 'EmailError', code: 'ESOCKET' },
  signature: unauthorized('Invalid token: invalid signature'),
  expired: unauthorized('Invalid token: jwt expired'),
  tooOld: unauthorized('Invalid token: maxAge exceeded'),
  audience: unauthorized('Invalid token: jwt audience invalid. expected: //?admin/?$/'),
  unknownKey: unauthorized('Unknown Admin API Key', 'UNKNOWN_ADMIN_API_KEY'),
  noHeader: unauthorized('Authorization header format is "Authorization: Ghost [token]"', 'INVALID_AUTH_HEADER'),
  filter: { message: 'Request not understood error, cannot list members.', type: 'BadRequestError' },
  notFound: { message: 'Resource not found error, cannot edit member.', type: 'NotFoundError' },
}
const refuse = (status: number, what: keyof typeof said): Said => ({ status, body: { errors: [said[what]] } })

/** As a Ghost 6.65.0 answered: unique addresses, labels by name, archived newsletters left out without a word. */
export function ghostFake(): GhostFake {
  const { contacts, find, facts } = contactBook<Member>()
  const labels: Named[] = []
  const newsletters = new Map([
    [DEFAULT, 'active'],
    [EARLY, 'active'],
    [ARCHIVED, 'archived'],
  ])
  const mailed: string[] = []
  let ids = 0

  /** One with an id alone is dropped without a word. */
  function labelled(wanted: readonly (string | { name?: string })[]): readonly Named[] {
    const names = wanted.map(each => (typeof each === 'string' ? each : (each.name ?? ''))).filter(name => name !== '')
    const found = names.map(name => {
      const known = labels.find(each => each.name.toLowerCase() === name.toLowerCase())
      if (known !== undefined) return known
      const label = { id: hex(++ids), name }
      labels.push(label)
      return label
    })
    return [...new Set(found)]
  }

  /** Undefined: one of them does not exist. */
  function subscribed(wanted: readonly { id: string }[]): readonly Named[] | undefined {
    if (wanted.some(({ id }) => !newsletters.has(id))) return undefined
    const active = wanted.filter(({ id }) => newsletters.get(id) === 'active')
    return active.map(({ id }) => ({ id, name: `Newsletter ${id}`, status: 'active' }))
  }

  const shown = (status: number, member: Member): Said => ({
    status,
    body: { members: [{ ...member, subscribed: member.newsletters.length > 0 }] },
  })

  function add({ json, query }: Received): Said {
    const { email, name = null, note = null, labels: wanted = [], newsletters = [{ id: DEFAULT }] } = json.members[0]
    if (email.length > 191) return refuse(422, 'tooLong')
    if (!/^[^@\s"\\]+@[^@\s]+\.[a-z]+$/.test(email)) return refuse(422, 'invalid')
    const active = subscribed(newsletters)
    if (active === undefined) return refuse(422, 'noNewsletter')
    if (contacts.has(email)) return refuse(422, 'known')
    const member: Member = { id: hex(++ids), email, name, note, labels: labelled(wanted), newsletters: active }
    contacts.set(email, member)
    if (query.send_email === 'true') {
      if (!fake.mail) return refuse(500, 'noMail')
      mailed.push(`${email} ${query.email_type}`)
    }
    return shown(201, member)
  }

  function edit(id: string | undefined, { labels: wanted, newsletters: listed }: Received['json']): Said {
    const member = find(each => each.id === id)
    if (member === undefined) return refuse(404, 'notFound')
    const active = listed === undefined ? member.newsletters : subscribed(listed)
    if (active === undefined) return refuse(422, 'noNewsletter')
    member.newsletters = active
    if (wanted !== undefined) member.labels = labelled(wanted)
    return shown(200, member)
  }

  function remove(id: string | undefined): Said {
    const member = find(each => each.id === id)
    return member !== undefined && contacts.delete(member.email) ? { status: 204 } : refuse(404, 'notFound')
  }

  function browse({ filter, fields }: Received['query']): Said {
    if (filter === undefined) {
      return { status: 200, body: { members: fields === 'id' ? [{ id: hex(1) }] : [], meta: {} } }
    }
    const [, quoted] = /^email:'((?:\\['"]|[^'"])+)'$/.exec(filter) ?? []
    if (quoted === undefined) return refuse(400, 'filter')
    const found = contacts.get(quoted.replaceAll(/\\(['"])/g, '$1'))
    return { status: 200, body: { members: found === undefined ? [] : [found], meta: {} } }
  }

  /** Undefined: the token is good. */
  function doubtful({ headers }: Received): Said | undefined {
    const [, token] = /^Ghost (\S+)$/.exec(headers.authorization ?? '') ?? []
    if (token === undefined) return refuse(401, 'noHeader')
    const [header = '', payload = '', signature] = token.split('.')
    const { kid, alg } = JSON.parse(Buffer.from(header, 'base64url').toString())
    const { iat, exp, aud } = JSON.parse(Buffer.from(payload, 'base64url').toString())
    if (kid !== KEY_ID || alg !== 'HS256') return refuse(401, 'unknownKey')
    const expected = createHmac('sha256', Buffer.from(SECRET, 'hex')).update(`${header}.${payload}`)
    if (signature !== expected.digest('base64url')) return refuse(401, 'signature')
    const now = Date.now() / 1_000 + fake.ahead
    if (!/\/?admin\/?$/.test(aud)) return refuse(401, 'audience')
    if (now >= exp) return refuse(401, 'expired')
    return now >= iat + 300 ? refuse(401, 'tooOld') : undefined
  }

  const listed = (filter: string | undefined) =>
    [...newsletters].filter(([, status]) => filter !== 'status:active' || status === 'active').map(([id]) => ({ id }))

  const fake: GhostFake = {
    ...facts,
    newsletters,
    mailed,
    mail: true,
    ahead: 0,
    answer: vendorApi({
      refuses: doubtful,
      routes: {
        'GET /ghost/api/admin/members/': ({ query }) => browse(query),
        // An address that it does not take is answered with a 422, and tried by the tests.
        'POST /ghost/api/admin/members/': taking(one(exactly({ email: text }, { ...sent, name })), add),
        'PUT /ghost/api/admin/members/{id}/': taking(one(exactly({}, sent)), ({ at, json }) =>
          edit(at.id, json.members[0]),
        ),
        'DELETE /ghost/api/admin/members/{id}/': ({ at }) => remove(at.id),
        'GET /ghost/api/admin/newsletters/': ({ query }) => ({
          status: 200,
          body: { newsletters: listed(query.filter), meta: {} },
        }),
      },
    }),
    had(email) {
      const old = { id: hex(++ids), email, name: 'Old', note: 'Met in Rome' }
      contacts.set(email, { ...old, labels: labelled(['VIP']), newsletters: subscribed([{ id: DEFAULT }])! })
    },
    joined: email => contacts.get(email)?.labels.some(({ name }) => name === 'Early access') ?? false,
  }
  return fake
}
