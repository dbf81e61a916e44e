import assert from 'node:assert/strict'
import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { listmonkContract } from './listmonk.contract.ts'

export const listmonkSettings = (url: string) => ({
  LISTMONK_BASE_URL: url,
  LISTMONK_USER: 'waitlist',
  LISTMONK_TOKEN: 'token-of-the-test',
  LISTMONK_LIST_IDS: '1,2',
  LISTMONK_TEMPLATE_ID: '5',
})

interface Membership {
  readonly id: number
  readonly optin: 'single' | 'double'
  readonly subscription_status: string
  readonly subscription_created_at: string
}

interface Subscriber {
  readonly id: number
  readonly uuid: string
  readonly email: string
  readonly name: string
  readonly status: string
  readonly created_at: string
  readonly attribs: Record<string, unknown>
  lists: Membership[]
}

export interface ListmonkFake extends VendorFake {
  /** The lists that there are. */
  readonly lists: Map<number, 'single' | 'double'>
  readonly templates: Set<number>
  /** The lists that the API user may manage; null: all. */
  granted: Set<number> | null
  /** Its permissions beside those for lists. */
  permissions: string[]
  /** Puts a subscriber there long ago, with its status, and on lists with theirs. */
  put(email: string, status: string, lists?: Readonly<Record<number, string>>): void
  /** How often this address was asked to confirm. */
  confirmations(email: string): number
}

const message = (status: number, text: string): Said => ({ status, body: { message: text } })
const denied = (name: string): Said => message(403, `Zugriff verweigert: ${name}`)
const notFound = (name: string): Said => message(400, `${name} nicht gefunden`)

/** As the language pack of the server's own language has them. */
const pack = {
  '_.code': 'de',
  'subscribers.domainBlocklisted': 'Diese e-Mail Domain ist blockiert.',
  'subscribers.emailExists': 'E-Mail existiert bereits.',
  'subscribers.invalidEmail': 'Ungültige E-Mail.',
}

/** As listmonk 6.2.0 itself answers in German: listmonk.real.test.ts asks it the same. */
export function listmonkFake(): ListmonkFake {
  const subscribers = new Map<string, Subscriber>()
  const starts = new Map<string, number>()
  const confirmations = new Map<string, number>()
  const lists = new Map<number, 'single' | 'double'>([
    [1, 'single'],
    [2, 'double'],
  ])
  const templates = new Set([5])
  let ids = 0
  let now = Date.now()

  const count = (counts: Map<string, number>, email: string) => counts.set(email, (counts.get(email) ?? 0) + 1)
  const mayManage = (id: number) => fake.granted?.has(id) ?? true
  const maySee = ({ lists: on }: Subscriber) => fake.granted === null || on.some(({ id }) => mayManage(id))
  const withId = (wanted: number) => [...subscribers.values()].find(({ id }) => id === wanted)

  const on = (wanted: readonly number[], status: string, at: string): Membership[] =>
    wanted
      .filter(id => lists.has(id))
      .map(id => ({ id, optin: lists.get(id)!, subscription_status: status, subscription_created_at: at }))

  function add(email: string, more: Pick<Subscriber, 'name' | 'status' | 'attribs'>, on: (at: string) => Membership[]) {
    const id = ++ids
    const at = new Date(++now).toISOString()
    const made: Subscriber = { id, uuid: `uuid-${id}`, email, ...more, created_at: at, lists: on(at) }
    subscribers.set(email, made)
    return made
  }

  /** One mail for all lists that wait for a confirmation. */
  function confirm({ email, lists: all }: Subscriber) {
    const waits = all.some(each => each.optin === 'double' && each.subscription_status === 'unconfirmed')
    if (waits) count(confirmations, email)
  }

  /** Lists that do not exist, or that the API user may not manage, are left out without a word. */
  function create({ email, name, status, lists: wanted, attribs = {}, preconfirm_subscriptions }: Asked['json']): Said {
    const address = email.trim().toLowerCase()
    if (address.startsWith('refused')) return message(400, pack['subscribers.invalidEmail'])
    if (address.endsWith('@blocked.example')) return message(400, pack['subscribers.domainBlocklisted'])
    const granted = wanted.filter(mayManage)
    if (wanted.length > 0 && granted.length === 0) return denied('lists')
    if (subscribers.has(address)) return message(409, pack['subscribers.emailExists'])
    const subscription = preconfirm_subscriptions ? 'confirmed' : 'unconfirmed'
    const data = add(address, { name, status, attribs }, at => on(granted, subscription, at))
    confirm(data)
    return { status: 200, body: { data } }
  }

  /** PostgreSQL's `~*` over name and address, the newest first; one row for each list that the API user may see. */
  function find({ search = '', per_page: perPage = '20', ...more }: Asked['query']): Said {
    assert.deepEqual(more, {}, 'unknown parameters')
    const pattern = new RegExp(search, 'i')
    const all = [...subscribers.values()]
      .filter(each => maySee(each) && (pattern.test(each.name) || pattern.test(each.email)))
      .toReversed()
      .flatMap(each => (fake.granted === null ? [each] : each.lists.filter(({ id }) => mayManage(id)).map(() => each)))
    const results = all.slice(0, Number(perPage))
    return { status: 200, body: { data: { results, total: all.length, page: 1, per_page: Number(perPage) } } }
  }

  function join({ ids: wanted, action, target_list_ids: targets, status }: Asked['json']): Said {
    assert.equal(action, 'add')
    for (const id of wanted) if (!maySee(withId(id)!)) return denied(`subscriber: ${id}`)
    const granted: number[] = targets.filter(mayManage)
    if (granted.length === 0) return denied('lists')
    if (!granted.every(id => lists.has(id))) return message(500, 'pq: … violates foreign key constraint …')
    const at = new Date(++now).toISOString()
    for (const each of wanted.map(withId)) {
      each.lists = [...each.lists.filter(({ id }: Membership) => !granted.includes(id)), ...on(granted, status, at)]
    }
    return { status: 200, body: { data: true } }
  }

  /** Says the same of what is not there. */
  function remove(id: number): Said {
    const found = withId(id)
    if (found !== undefined && !maySee(found)) return denied(`subscriber: ${id}`)
    subscribers.delete(found?.email ?? '')
    return { status: 200, body: { data: true } }
  }

  function ask(id: number): Said {
    const found = withId(id)
    if (found === undefined) return notFound(`Abonnent (${id}: )`)
    if (!maySee(found)) return denied(`subscriber: ${id}`)
    confirm(found)
    return { status: 200, body: { data: true } }
  }

  function send({ subscriber_id: id, subscriber_email: email, template_id: template }: Asked['json']): Said {
    if (!templates.has(template)) return notFound(`template ${template}`)
    const found = id === undefined ? subscribers.get(email) : withId(id)
    if (found === undefined) return notFound(`Abonnent (${id ?? 0}: ${email ?? ''})`)
    count(starts, found.email)
    return { status: 200, body: { data: true } }
  }

  function look(id: number): Said {
    if (!mayManage(id)) return message(403, 'permission denied')
    if (!lists.has(id)) return notFound('Liste')
    return { status: 200, body: { data: { id, name: 'List', optin: lists.get(id) } } }
  }

  function profile(): Said {
    const all = fake.granted === null ? ['lists:get_all', 'lists:manage_all'] : []
    const each = [...(fake.granted ?? [])].map(id => ({ id, name: 'List', permissions: ['list:get', 'list:manage'] }))
    const list_role = fake.granted === null ? null : { id: 3, name: 'Lists', lists: each }
    const user_role = { id: 2, name: 'Waitlist', permissions: [...fake.permissions, ...all] }
    return { status: 200, body: { data: { id: 3, username: 'waitlist', type: 'api', user_role, list_role } } }
  }

  function answer({ method, path, query, headers, json }: Asked): Said {
    if (headers.authorization !== 'token waitlist:token-of-the-test') return message(403, 'invalid API credentials')
    const [, id] = /(\d+)(?:\/optin)?$/.exec(path) ?? []
    switch (`${method} ${id === undefined ? path : path.replace(id, '{id}')}`) {
      case 'POST /api/subscribers':
        return create(json)
      case 'GET /api/subscribers':
        return find(query)
      case 'PUT /api/subscribers/lists':
        return join(json)
      case 'DELETE /api/subscribers/{id}':
        return remove(Number(id))
      case 'POST /api/subscribers/{id}/optin':
        return ask(Number(id))
      case 'POST /api/tx':
        return send(json)
      case 'GET /api/lists/{id}':
        return look(Number(id))
      case 'GET /api/profile':
        return profile()
      case 'GET /api/config':
        return { status: 200, body: { data: { lang: 'de', version: 'v6.2.0' } } }
      case 'GET /api/lang/de':
        return { status: 200, body: { data: pack } }
      default:
        return message(404, '404 unknown endpoint')
    }
  }

  const fake: ListmonkFake = {
    lists,
    templates,
    granted: null,
    permissions: ['subscribers:get_all', 'subscribers:manage', 'tx:send'],
    answer: documented(listmonkContract, answer),
    put(email, status, memberships = {}) {
      const old = { name: 'Old', status, attribs: { city: 'Berlin' } }
      add(email, old, at => Object.entries(memberships).flatMap(([id, each]) => on([Number(id)], each, at)))
    },
    had: email => fake.put(email, 'enabled'),
    kept: email => subscribers.get(email),
    count: email => (subscribers.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
    joined: email => [1, 2].every(id => subscribers.get(email)?.lists.some(each => each.id === id)),
    confirmations: email => confirmations.get(email) ?? 0,
  }
  return fake
}
