import { createHmac } from 'node:crypto'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { ghostCalls, said } from './ghost.contract.ts'

const KEY_ID = 'a1'.repeat(12)
const SECRET = 'b2'.repeat(32)
export const anotherSecret = `${KEY_ID}:${'0'.repeat(64)}`

export const ghostSettings = (url: string) => ({ GHOST_BASE_URL: url, GHOST_ADMIN_API_KEY: `${KEY_ID}:${SECRET}` })

const hex = (number: number) => number.toString(16).padStart(24, '0')
export const DEFAULT = hex(0xd0)
export const EARLY = hex(0xd1)
export const ARCHIVED = hex(0xd2)

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

const refuse = (status: number, what: object): Said => {
  const none = { context: null, details: null, property: null, help: null, code: null, ghostErrorCode: null }
  return { status, body: { errors: [{ ...none, ...what, id: '8ceece40-6c43-4b37-8e71-54a30162ecc8' }] } }
}

/** As a Ghost 6.65.0 answered: unique addresses, labels by name, archived newsletters left out without a word. */
export function ghostFake(): GhostFake {
  const members = new Map<string, Member>()
  const labels: Named[] = []
  const newsletters = new Map([
    [DEFAULT, 'active'],
    [EARLY, 'active'],
    [ARCHIVED, 'archived'],
  ])
  const mailed: string[] = []
  let ids = 0

  function labelled(wanted: readonly (string | { name?: string })[]): readonly Named[] {
    const found = wanted
      .map(each => (typeof each === 'string' ? each : (each.name ?? '')))
      // One with an id alone is dropped without a word.
      .filter(name => name !== '')
      .map(name => {
        const known = labels.find(each => each.name.toLowerCase() === name.toLowerCase())
        if (known !== undefined) return known
        const label = { id: hex(++ids), name, slug: name.toLowerCase().replaceAll(' ', '-') }
        labels.push(label)
        return label
      })
    return [...new Set(found)]
  }

  /** Undefined: one of them does not exist. */
  function subscribed(wanted: readonly { id: string }[]): readonly Named[] | undefined {
    if (wanted.some(({ id }) => !newsletters.has(id))) return undefined
    const active = wanted.filter(({ id }) => newsletters.get(id) === 'active')
    return active.map(({ id }) => ({ id, name: `Newsletter ${id}`, description: null, status: 'active' }))
  }

  const shown = (member: Member) => {
    const since = '2026-11-22T12:09:23.000Z'
    return { ...member, uuid: 'u', subscribed: member.newsletters.length > 0, created_at: since, status: 'free' }
  }

  function add({ json, query }: Asked): Said {
    const {
      email,
      name = null,
      note = null,
      labels: wanted = [],
      newsletters: ids_ = [{ id: DEFAULT }],
    } = json.members[0]
    if (email.length > 191) return refuse(422, said.tooLong)
    if (/^,/.test(name)) return refuse(422, said.comma)
    if (!/^[^@\s"\\]+@[^@\s]+\.[a-z]+$/.test(email)) return refuse(422, said.invalid)
    const active = subscribed(ids_)
    if (active === undefined) return refuse(422, said.noNewsletter)
    if (members.has(email)) return refuse(422, said.known)
    const member: Member = { id: hex(++ids), email, name, note, labels: labelled(wanted), newsletters: active }
    members.set(email, member)
    if (query.send_email === 'true') {
      if (!fake.mail) return refuse(500, said.noMail)
      mailed.push(`${email} ${query.email_type}`)
    }
    return { status: 201, body: { members: [shown(member)] } }
  }

  function edit(id: string, { json }: Asked): Said {
    const member = [...members.values()].find(each => each.id === id)
    if (member === undefined) return refuse(404, said.notFound)
    const { labels: wanted, newsletters: listed } = json.members[0]
    const active = listed === undefined ? member.newsletters : subscribed(listed)
    if (active === undefined) return refuse(422, said.noNewsletter)
    member.newsletters = active
    if (wanted !== undefined) member.labels = labelled(wanted)
    return { status: 200, body: { members: [shown(member)] } }
  }

  function browse({ filter, fields }: Asked['query']): Said {
    const meta = { pagination: { page: 1, limit: 15, pages: 1, total: 1, next: null, prev: null } }
    if (filter === undefined) return { status: 200, body: { members: fields === 'id' ? [{ id: hex(1) }] : [], meta } }
    const [, quoted] = /^email:'((?:\\['"]|[^'"])+)'$/.exec(filter) ?? []
    if (quoted === undefined) return refuse(400, said.filter)
    const found = members.get(quoted.replaceAll(/\\(['"])/g, '$1'))
    return { status: 200, body: { members: found === undefined ? [] : [shown(found)], meta } }
  }

  /** Undefined: the token is good. */
  function doubtful({ headers }: Asked): Said | undefined {
    const [, token] = /^Ghost (\S+)$/.exec(headers.authorization ?? '') ?? []
    if (token === undefined) return refuse(401, said.noHeader)
    const [header = '', payload = '', signature] = token.split('.')
    const { kid, alg } = JSON.parse(Buffer.from(header, 'base64url').toString())
    const { iat, exp, aud } = JSON.parse(Buffer.from(payload, 'base64url').toString())
    if (kid !== KEY_ID || alg !== 'HS256') return refuse(401, said.unknownKey)
    const expected = createHmac('sha256', Buffer.from(SECRET, 'hex')).update(`${header}.${payload}`)
    if (signature !== expected.digest('base64url')) return refuse(401, said.signature)
    const now = Date.now() / 1_000 + fake.ahead
    if (!/\/?admin\/?$/.test(aud)) return refuse(401, said.audience)
    if (now >= exp) return refuse(401, said.expired)
    return now >= iat + 300 ? refuse(401, said.tooOld) : undefined
  }

  function answer(asked: Asked): Said {
    const doubt = doubtful(asked)
    if (doubt !== undefined) return doubt
    const { method, path, query } = asked
    const [, id] = /^\/ghost\/api\/admin\/members\/(\w+)\/$/.exec(path) ?? []
    if (method === 'PUT' && id !== undefined) return edit(id, asked)
    if (method === 'DELETE' && id !== undefined) {
      const member = [...members.values()].find(each => each.id === id)
      return member !== undefined && members.delete(member.email) ? { status: 204 } : refuse(404, said.notFound)
    }
    switch (`${method} ${path}`) {
      case 'POST /ghost/api/admin/members/':
        return add(asked)
      case 'GET /ghost/api/admin/members/':
        return browse(query)
      case 'GET /ghost/api/admin/newsletters/': {
        const shown = [...newsletters].filter(([, status]) => query.filter !== 'status:active' || status === 'active')
        return { status: 200, body: { newsletters: shown.map(([each]) => ({ id: each })), meta: {} } }
      }
      default:
        return refuse(404, said.notFound)
    }
  }

  const fake: GhostFake = {
    newsletters,
    mailed,
    mail: true,
    ahead: 0,
    answer: documented(ghostCalls, answer),
    had(email) {
      const old = { id: hex(++ids), email, name: 'Old', note: 'Met in Rome' }
      members.set(email, { ...old, labels: labelled(['VIP']), newsletters: subscribed([{ id: DEFAULT }])! })
    },
    kept: email => members.get(email),
    count: email => (members.has(email) ? 1 : 0),
    starts: () => 0,
    joined(email) {
      const member = members.get(email)
      return member?.labels.some(({ name }) => name === 'Early access') ?? false
    },
  }
  return fake
}
