import { number, numbers, optional, required, type ValuesOf, withDefault, word, yesOrNo } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { idAt, inDoubt, memberAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../signup/contact.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation, Removal } from '../waitlist/ports/provider.ts'
import { type Connect, type Fields, site, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, misconfigured } from './vendor-client.ts'

const settings = {
  LISTMONK_BASE_URL: required(
    site('/api'),
    'Address of your listmonk, without /api.',
    'The address of its admin page.',
  ),
  LISTMONK_USER: required(
    word,
    'Name of an API user that may get and manage subscribers and the lists, and send transactional mails.',
    'listmonk: Users, New, type API.',
  ),
  LISTMONK_TOKEN: required(word, 'Token of the API user.', 'listmonk: shown once when the API user is made.'),
  LISTMONK_LIST_IDS: required(numbers, 'Lists to add the contact to.', 'listmonk: Lists; the number beside the name.'),
  LISTMONK_TEMPLATE_ID: optional(
    number,
    'Transactional template to send to a new contact.',
    'listmonk: Campaigns, Templates, type Transactional.',
  ),
  LISTMONK_PRECONFIRM: withDefault(
    yesOrNo,
    'false',
    'Whether subscriptions count as confirmed, so that lists with double opt-in ask nobody.',
    'Your choice; with true you vouch for the consent.',
  ),
}
type Settings = ValuesOf<typeof settings>

export const listmonk: Vendor<typeof settings> = {
  title: 'listmonk',
  settings,
  rate: { calls: 100, per: 1_000, connections: 10 },
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: 0,
    namesEvents: false,
    removal: 'at once',
  },
  takesFields: true,
  client,
}

/** Bytes of an answer: its longest language pack has 92,000. */
const LARGEST_ANSWER = 131_072

/** Its messages that can only mean an address, by their keys in a language pack, and what the visitor hears. */
const REFUSALS: Readonly<Record<string, string>> = {
  'subscribers.invalidEmail': 'it is not valid there',
  'subscribers.domainBlocklisted': 'its domain is blocked there',
}

/** The largest id of its database, which nobody has. */
const NOBODY = 2_147_483_647

/** What to do where the API user cannot tell. */
const LOOK = 'look for the address in listmonk, under Subscribers'

/** The role that may do everything, whatever its permissions are. */
const SUPER_ADMIN = 1

/** One that the API user may see. */
interface Subscriber {
  readonly is: 'found'
  readonly id: string
  readonly json: unknown
  /** Those of our lists that it is on, or has unsubscribed from. */
  readonly joined: readonly unknown[]
}

/** There is none that the API user may see; or another one hides it. */
type Unfound = { readonly is: 'unseen' } | { readonly is: 'unsure' }

/** https://listmonk.app/docs/apis/apis and the source, https://github.com/knadh/listmonk. Its messages are localised. */
function client(settings: Settings, connect: Connect, fields: Fields): VendorClient {
  const { LISTMONK_LIST_IDS: lists, LISTMONK_TEMPLATE_ID: template, LISTMONK_PRECONFIRM: preconfirm } = settings
  const { call, get, post } = connect({
    base: `${settings.LISTMONK_BASE_URL}/api`,
    headers: { authorization: `token ${settings.LISTMONK_USER}:${settings.LISTMONK_TOKEN}` },
    largest: LARGEST_ANSWER,
  })

  /** Those of our lists among a subscriber's. */
  function oursAmong(subscriber: unknown): readonly unknown[] | undefined {
    const all = memberAt(subscriber, 'lists')
    return Array.isArray(all) ? all.filter(each => lists.some(id => id === memberAt(each, 'id'))) : undefined
  }
  const absentFrom = (joined: readonly unknown[]) =>
    lists.filter(id => !joined.some(each => memberAt(each, 'id') === id))

  async function find(email: string, attempt: Attempt): Promise<Subscriber | Failure | Unfound> {
    // There is a row for each list of a subscriber, each with all of its lists: a second one could be too much to read.
    const reply = await get('find a subscriber', '/subscribers', attempt, { search: exactly(email), per_page: '1' })
    const rows = reply.list('data', 'results')
    if (rows === undefined) return reply.failure
    if (rows.length === 0) return { is: 'unseen' }
    const [json] = rows as readonly unknown[]
    // Names are searched too.
    if (textAt(json, 'email') !== email) return { is: 'unsure' }
    const id = idAt(json, 'id')
    const joined = oursAmong(json)
    return id === undefined || joined === undefined ? reply.failure : { is: 'found', id, json, joined }
  }

  /** In doubt, checks whether an existing subscriber is ours, and then completes it. */
  async function existing({ id, email }: Contact, attempt: Attempt): Promise<Creation> {
    const found = await find(email, attempt)
    if (found.is === 'unsure') return { is: 'existing' }
    if (found.is === 'unseen') {
      // Ours is on a list that the API user may see, unless the lists are gone.
      const failure = await lookAtAll(attempt)
      return failure === null ? { is: 'existing', ours: false } : inDoubt(failure)
    }
    if (found.is !== 'found') return found
    const ours = textAt(found.json, 'attribs', 'waitlist') === id
    const failure = ours ? await complete(found, ours, attempt) : null
    return failure === null ? { is: 'existing', providerId: found.id, ours } : inDoubt(failure)
  }

  /**
   * Adds a subscriber to those of our lists that it was never on, as a form of listmonk would do. One at a time, since a
   * forbidden list among others is left out without a word.
   */
  async function complete({ id, json, joined }: Subscriber, ours: boolean, attempt: Attempt): Promise<Failure | null> {
    const statusOf = (each: unknown) => textAt(each, 'subscription_status')
    const hasLeft = textAt(json, 'status') !== 'enabled' || joined.some(each => statusOf(each) === 'unsubscribed')
    if (hasLeft) return null
    // At a creation listmonk asks by itself. What was added later, maybe by an earlier attempt of ours, has another time.
    const born = Date.parse(textAt(json, 'created_at') ?? '')
    const isLater = (each: unknown) => Date.parse(textAt(each, 'subscription_created_at') ?? '') > born
    let unasked = joined.some(
      each => memberAt(each, 'optin') === 'double' && statusOf(each) === 'unconfirmed' && isLater(each),
    )
    for (const list of absentFrom(joined)) {
      // To add to a list that is gone is a server error, so it is looked at first.
      const seen = await lookAt(list, attempt)
      if (!isList(list, seen)) return seen.failure
      const status = preconfirm ? 'confirmed' : 'unconfirmed'
      const body = { ids: [Number(id)], action: 'add', target_list_ids: [list], status }
      const to = `add to list ${list}`
      const reply = await call({ to, method: 'PUT', path: '/subscribers/lists', body }, attempt)
      // The API user may not change this subscriber of other lists, even if it may see it.
      if (!ours && reply.status === 403 && reply.text('message')?.endsWith(`subscriber: ${id}`)) return null
      if (!isDone(reply)) return reply.failure
      unasked ||= seen.at('data', 'optin') === 'double'
    }
    if (!unasked || preconfirm) return null
    const path = `/subscribers/${id}/optin`
    const reply = await call({ to: 'ask for a confirmation', method: 'POST', path }, attempt)
    if (isDone(reply)) return null
    const failure = reply.failure
    // A mail that may have been sent is not sent again.
    return reply.status === 0 && failure.is === 'unclear' ? null : failure
  }

  const lookAt = (list: number, attempt: Attempt) => get(`look at list ${list}`, `/lists/${list}`, attempt)

  async function lookAtAll(attempt: Attempt): Promise<Failure | null> {
    for (const list of lists) {
      const seen = await lookAt(list, attempt)
      if (!isList(list, seen)) return seen.failure
    }
    return null
  }

  const getUser = (attempt: Attempt) => get('look at the API user', '/profile', attempt)

  /** What an address is that the API user does not see: absent, if it sees everybody. */
  async function unseen(attempt: Attempt): Promise<Removal> {
    const reply = await getUser(attempt)
    if (reply.status !== 200) return reply.failure
    const role = reply.at('data', 'user_role')
    const seesAll = memberAt(role, 'id') === SUPER_ADMIN || holds(memberAt(role, 'permissions'), 'subscribers:get_all')
    return seesAll
      ? { is: 'absent' }
      : { is: 'by hand', how: `${LOOK}: its API user sees only those on lists of its own` }
  }

  /** The permissions that a signup takes: listmonk leaves out lists that may be seen but not managed, without a word. */
  async function lookAtUser(attempt: Attempt): Promise<Failure | null> {
    const reply = await getUser(attempt)
    if (reply.status !== 200) return reply.failure
    const user = reply.at('data')
    const held = memberAt(user, 'user_role', 'permissions')
    if (!Array.isArray(held) || memberAt(user, 'user_role', 'id') === SUPER_ADMIN) return null
    const listsOf = memberAt(user, 'list_role', 'lists')
    const managed = Array.isArray(listsOf)
      ? listsOf.filter(each => holds(memberAt(each, 'permissions'), 'list:manage'))
      : []
    const lacking = [
      ...(holds(held, 'subscribers:manage') ? [] : ['subscribers:manage']),
      ...(holds(held, 'subscribers:get', 'subscribers:get_all') ? [] : ['subscribers:get']),
      ...(holds(held, 'lists:manage_all') ? [] : absentFrom(managed).map(id => `list:manage for list ${id}`)),
    ]
    return lacking.length === 0 ? null : misconfigured(`the API user lacks ${lacking.join(', ')}`)
  }

  /** Sends nothing: there is no such subscriber, which listmonk finds after the template. */
  async function lookAtTemplate(attempt: Attempt): Promise<Failure | null> {
    const body = { subscriber_id: NOBODY, template_id: template }
    const reply = await post(`look at template ${template}`, '/tx', body, attempt)
    return reply.status === 400 && !isWithoutTemplate(reply) ? null : reply.failure
  }

  /** Of its translated message this part is the same in every language, but for two of the 35, which leave it out. */
  const isWithoutTemplate = ({ json }: Answer) => textAt(json, 'message')?.includes(`template ${template}`)

  /** Drops the signup only if the 400 says, word by word, what the server's own language pack has for an address. */
  async function refused(reply: Answer, attempt: Attempt): Promise<Creation> {
    const said = reply.text('message')
    if (said === undefined) return reply.failure
    const config = await get('ask for the language', '/config', attempt)
    if (config.status === 0) return config.failure
    const lang = config.text('data', 'lang')
    if (config.status !== 200 || lang === undefined) return reply.failure
    const pack = await get('read the language pack', `/lang/${encodeURIComponent(lang)}`, attempt)
    if (pack.status === 0) return pack.failure
    const key = Object.keys(REFUSALS).find(each => pack.text('data', each) === said)
    return key === undefined ? reply.failure : { is: 'refused', reason: REFUSALS[key]! }
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { id, name, email } = contact
      const attribs = { ...fields, ...contact.source, waitlist: id }
      const more = preconfirm ? { preconfirm_subscriptions: true } : {}
      const body = { email, name, status: 'enabled', lists, attribs, ...more }
      const reply = await post('create a subscriber', '/subscribers', body, attempt)
      const { status, json, summary } = reply
      const providerId = idAt(json, 'data', 'id')
      const joined = oursAmong(memberAt(json, 'data'))
      if (status === 200 && providerId !== undefined && joined !== undefined) {
        // Lists that do not exist, or that the API user may not manage, are left out without a word.
        const absent = absentFrom(joined)
        if (absent.length === 0) return { is: 'created', providerId }
        const why = `${summary}, but not on the lists ${absent.join(', ')}: do they exist, may the API user manage them?`
        return { is: 'misconfigured', why, tookEffect: true }
      }
      if (status === 409) return doubt ? existing(contact, attempt) : { is: 'existing' }
      return status === 400 ? refused(reply, attempt) : reply.failure
    },

    async join({ email }, attempt) {
      const found = await find(email, attempt)
      if (found.is === 'found') return complete(found, false, attempt)
      // Whom the API user may not see, it may not change.
      return found.is === 'unseen' || found.is === 'unsure' ? null : found
    },

    automation:
      template === undefined
        ? null
        : async ({ contact: { email, providerId } }, attempt) => {
            const to = providerId === undefined ? { subscriber_email: email } : { subscriber_id: Number(providerId) }
            const reply = await post('send a mail', '/tx', { ...to, template_id: template }, attempt)
            if (reply.status === 200 && reply.at('data') === true) return { is: 'delivered' }
            return isWithoutTemplate(reply) ? reply.failure : reply.refusal
          },

    async remove(email, attempt) {
      const found = await find(email, attempt)
      if (found.is === 'unsure') return { is: 'by hand', how: LOOK }
      if (found.is === 'unseen') return unseen(attempt)
      if (found.is !== 'found') return found
      const path = `/subscribers/${found.id}`
      const reply = await call({ to: 'delete a subscriber', method: 'DELETE', path }, attempt)
      return reply.removedIf(isDone(reply))
    },

    check: async attempt =>
      (await lookAtUser(attempt)) ??
      (await lookAtAll(attempt)) ??
      (template === undefined ? null : lookAtTemplate(attempt)),
  }
}

const holds = (permissions: unknown, ...anyOf: readonly string[]): boolean =>
  Array.isArray(permissions) && anyOf.some(each => permissions.includes(each))

const isList = (id: number, { status, json }: Answer): boolean => status === 200 && memberAt(json, 'data', 'id') === id

const isDone = ({ status, json }: Answer): boolean => status === 200 && memberAt(json, 'data') === true

/** The search is a PostgreSQL regular expression (§9.7.3), so special characters in an address are escaped. */
const exactly = (email: string): string => `^${email.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`
