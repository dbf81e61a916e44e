import { createHmac } from 'node:crypto'
import { names, optional, required, shaped, type ValuesOf, words } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import type { Call } from '../outbound/caller.ts'
import { idAt, inDoubt, memberAt, type Refused, textAt } from '../outbound/reply.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import { type Connect, site, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID, misconfigured } from './vendor-client.ts'

const settings = {
  GHOST_BASE_URL: required(
    site('/ghost'),
    'Address of the site or its admin, without /ghost.',
    'Ghost: Settings, Integrations, your custom integration, API URL.',
  ),
  GHOST_ADMIN_API_KEY: required(
    shaped(
      /^[0-9a-f]{24}:[0-9a-f]{64}$/,
      'must be an Admin API key: 24 hexadecimal digits, a colon and 64 hexadecimal digits',
    ),
    'Admin API key of a custom integration.',
    'Ghost: Settings, Integrations, Add custom integration, Admin API key.',
  ),
  GHOST_LABELS: optional(names, 'Labels to give to the member; new ones are made.', 'Ghost: Members, Filter, Label.'),
  GHOST_NEWSLETTER_IDS: optional(
    words,
    'Newsletters to subscribe the member to, instead of those that Ghost chooses for new members.',
    'Ghost: Settings, Newsletters; the id in its address.',
  ),
}
type Settings = ValuesOf<typeof settings>

export const ghost: Vendor<typeof settings> = {
  title: 'Ghost',
  settings,
  rate: { calls: 20, per: 1_000, connections: 5 },
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: null,
    namesEvents: false,
    removal: 'at once',
  },
  client,
}

/** Each list replaces the one that the member has. */
interface Edit {
  readonly labels?: readonly unknown[]
  readonly newsletters?: readonly unknown[]
}

interface Found {
  readonly is: 'found'
  readonly member: unknown
  readonly providerId: string
}

/**
 * https://docs.ghost.org/admin-api and the source, https://github.com/TryGhost/Ghost, whose messages are in English.
 * There is nothing to start: welcome mails and automations are for those who sign up on the site itself.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { GHOST_ADMIN_API_KEY: key, GHOST_LABELS: labels = [], GHOST_NEWSLETTER_IDS: newsletters } = settings
  const all = newsletters ?? []
  const { call } = connect({
    base: `${settings.GHOST_BASE_URL}/ghost/api/admin`,
    headers: { 'accept-version': 'v6.0' },
  })

  const ask = (what: Call, attempt: Attempt) =>
    call({ ...what, headers: { authorization: `Ghost ${token(key)}` } }, attempt)

  /**
   * The edit that gives a member the labels and newsletters that it lacks, beside its own; null: it has them all;
   * undefined: that is no member. Labels are compared without case, as Ghost does.
   */
  function lacking(member: unknown, wanted: readonly string[] = all): Edit | null | undefined {
    const given = memberAt(member, 'labels')
    const subscribed = memberAt(member, 'newsletters')
    if (!Array.isArray(given) || !Array.isArray(subscribed)) return undefined
    const has = new Set(given.map(each => textAt(each, 'name')?.toLowerCase()))
    const addLabels = labels.filter(name => !has.has(name.toLowerCase()))
    const ids = subscribed.map(each => memberAt(each, 'id'))
    const addNewsletters = wanted.filter(id => !ids.includes(id))
    if (addLabels.length + addNewsletters.length === 0) return null
    return {
      ...(addLabels.length > 0 && { labels: [...given, ...addLabels.map(name => ({ name }))] }),
      ...(addNewsletters.length > 0 && { newsletters: [...ids, ...addNewsletters].map(id => ({ id })) }),
    }
  }

  /** Labels are made, but archived newsletters are left out without a word. */
  const incomplete = ({ summary }: Answer): Failure => ({
    is: 'misconfigured',
    why: `${summary}, but not with every newsletter: are they active?`,
  })

  /** Absent: there is none, or none that Ghost finds by these letters. */
  async function find(email: string, attempt: Attempt): Promise<Found | { readonly is: 'absent' } | Failure> {
    const query = { filter: `email:'${email.replaceAll(/['"]/g, '\\$&')}'` }
    const reply = await ask({ to: 'find a member', method: 'GET', path: '/members/', query }, attempt)
    const members = reply.list('members')
    if (members === undefined) return reply.failure
    const member: unknown = members.find(each => textAt(each, 'email')?.toLowerCase() === email)
    if (member === undefined) return { is: 'absent' }
    const providerId = idAt(member, 'id')
    return providerId === undefined || lacking(member) === undefined
      ? reply.failure
      : { is: 'found', member, providerId }
  }

  /** Null: the member has the labels and these newsletters now. */
  async function complete(
    { member, providerId }: Found,
    wanted: readonly string[],
    attempt: Attempt,
  ): Promise<Failure | Refused | null> {
    const edit = lacking(member, wanted)
    if (edit === null) return null
    const path = `/members/${encodeURIComponent(providerId)}/`
    const body = { members: [edit] }
    const reply = await ask({ to: 'add labels and newsletters', method: 'PUT', path, body }, attempt)
    const left = lacking(reply.at('members', 0), wanted)
    if (reply.status !== 200 || left === undefined) return reply.refusal
    return left?.newsletters === undefined ? null : incomplete(reply)
  }

  return {
    async createContact({ id, name, email }, doubt, attempt) {
      const member = {
        email,
        // Ghost takes no name that begins with a comma.
        name: name.replace(/^[,\s]+/, ''),
        note: `waitlist ${id}`,
        ...(labels.length > 0 && { labels }),
        ...(newsletters && { newsletters: newsletters.map(each => ({ id: each })) }),
      }
      const body = { members: [member] }
      const reply = await ask({ to: 'create a member', method: 'POST', path: '/members/', body }, attempt)
      const created = reply.at('members', 0)
      const providerId = idAt(created, 'id')
      const left = lacking(created)
      if (reply.status === 201 && providerId !== undefined && left !== undefined) {
        return left?.newsletters === undefined ? { is: 'created', providerId } : inDoubt(incomplete(reply))
      }
      const problem = problemOf(reply)
      if (problem === 'invalid') return INVALID
      if (problem !== 'known') return reply.failure
      if (!doubt) return { is: 'existing' }

      const found = await find(email, attempt)
      // What cannot be seen is not ours.
      if (found.is === 'absent') return { is: 'existing', ours: false }
      if (found.is !== 'found') return found
      const ours = textAt(found.member, 'note')?.includes(id) ?? false
      const failure = ours ? await complete(found, all, attempt) : null
      return failure === null ? { is: 'existing', providerId: found.providerId, ours } : inDoubt(failure)
    },

    // Labels alone: a newsletter that the member lacks may be one that it has left.
    join:
      labels.length === 0
        ? undefined
        : async ({ email }, attempt) => {
            const found = await find(email, attempt)
            if (found.is === 'absent') return null
            return found.is === 'found' ? complete(found, [], attempt) : found
          },

    automation: null,

    async remove(email, attempt) {
      const found = await find(email, attempt)
      if (found.is !== 'found') return found
      const path = `/members/${encodeURIComponent(found.providerId)}/`
      const reply = await ask({ to: 'delete a member', method: 'DELETE', path, statusAlone: true }, attempt)
      return reply.removedIf(reply.status === 204)
    },

    async check(attempt) {
      const query = { limit: '1', fields: 'id' }
      const members = await ask({ to: 'check the key', method: 'GET', path: '/members/', query }, attempt)
      if (members.list('members') === undefined) return members.failure
      if (newsletters === undefined) return null

      const active = { filter: 'status:active', limit: '100', fields: 'id' }
      const to = 'look at the newsletters'
      const reply = await ask({ to, method: 'GET', path: '/newsletters/', query: active }, attempt)
      const all = reply.list('newsletters')
      if (all === undefined) return reply.failure
      const absent = newsletters.filter(each => !all.some(one => memberAt(one, 'id') === each))
      return absent.length === 0 ? null : misconfigured(`${to}: ${absent.join(', ')} is not among the active ones`)
    },
  }
}

/** What is wrong with the address; undefined: something else is wrong. A property has one text for each problem. */
function problemOf({ status, json }: Answer): 'known' | 'invalid' | undefined {
  const { property, context } = (memberAt(json, 'errors', 0) ?? {}) as Readonly<Record<string, unknown>>
  if (status !== 422 || property !== 'email' || typeof context !== 'string') return undefined
  if (context.includes('Attempting to add member with existing email address')) return 'known'
  return context === 'Invalid Email' || context === 'Validation failed for email.' ? 'invalid' : undefined
}

/**
 * A JSON Web Token (RFC 7519) that begins now and lasts for as long as Ghost takes one: 5 minutes. It also takes one that
 * begins in the future, so our clock may be fast, and up to 5 minutes slow.
 */
function token(key: string): string {
  const [id = '', secret = ''] = key.split(':')
  const now = Math.floor(Date.now() / 1000)
  const signed = [
    { alg: 'HS256', typ: 'JWT', kid: id },
    { iat: now, exp: now + 300, aud: '/admin/' },
  ]
    .map(part => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.')
  return `${signed}.${createHmac('sha256', Buffer.from(secret, 'hex')).update(signed).digest('base64url')}`
}
