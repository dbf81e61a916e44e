import assert from 'node:assert/strict'
import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, exactly, listOf, object, taking, text, vendorApi, whole, yesOrNo } from '../harness/vendor-api.ts'

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
  /** The status of an address on each of its lists. */
  on(email: string): Readonly<Record<number, string>>
}

/*
 * Facts of listmonk's docs/swagger/collections.yaml (1.0.0), as far as we send or read it. It has successes alone. The
 * parameter `search`, the profile, `optin` and the times of a subscription, and that errors are `{message}` with 400, 403, 409
 * and 500, are from the source and from 6.2.0 itself.
 */
const creation = exactly(
  { email: text, name: text, status: { enum: ['enabled', 'disabled', 'blocklisted'] }, lists: listOf(whole) },
  { attribs: object(), preconfirm_subscriptions: yesOrNo },
)
const addition = exactly({
  ids: listOf(whole),
  action: { enum: ['add', 'remove', 'unsubscribe'] },
  target_list_ids: listOf(whole),
  status: { enum: ['confirmed', 'unconfirmed', 'unsubscribed'] },
})
const mail = {
  ...exactly({ template_id: whole }, { subscriber_email: text, subscriber_id: whole }),
  oneOf: [{ required: ['subscriber_email'] }, { required: ['subscriber_id'] }],
}

const message = (status: number, text: string): Said => ({ status, body: { message: text } })
const denied = (name: string): Said => message(403, `Zugriff verweigert: ${name}`)
const notFound = (name: string): Said => message(400, `${name} nicht gefunden`)
const ok = (data: unknown = true): Said => ({ status: 200, body: { data } })

/** As the language pack of the server's own language has them. */
const pack = {
  '_.code': 'de',
  'subscribers.domainBlocklisted': 'Diese e-Mail Domain ist blockiert.',
  'subscribers.emailExists': 'E-Mail existiert bereits.',
  'subscribers.invalidEmail': 'Ungültige E-Mail.',
}

/** As listmonk 6.2.0 itself answers in German. */
export function listmonkFake(): ListmonkFake {
  const { contacts, find: findBy, start, facts } = contactBook<Subscriber>()
  const confirmations = new Map<string, number>()
  const lists = new Map<number, 'single' | 'double'>([
    [1, 'single'],
    [2, 'double'],
  ])
  const templates = new Set([5])
  let ids = 0
  let now = Date.now()

  const mayManage = (id: number) => fake.granted?.has(id) ?? true
  const maySee = ({ lists: on }: Subscriber) => fake.granted === null || on.some(({ id }) => mayManage(id))
  const withId = (wanted: number) => findBy(({ id }) => id === wanted)

  const on = (wanted: readonly number[], status: string, at: string): Membership[] =>
    wanted
      .filter(id => lists.has(id))
      .map(id => ({ id, optin: lists.get(id)!, subscription_status: status, subscription_created_at: at }))

  function add(email: string, more: Pick<Subscriber, 'name' | 'status' | 'attribs'>, on: (at: string) => Membership[]) {
    const at = new Date(++now).toISOString()
    const made: Subscriber = { id: ++ids, email, ...more, created_at: at, lists: on(at) }
    contacts.set(email, made)
    return made
  }

  /** One mail for all lists that wait for a confirmation. */
  function confirm({ email, lists: all }: Subscriber) {
    const waits = all.some(each => each.optin === 'double' && each.subscription_status === 'unconfirmed')
    if (waits) confirmations.set(email, (confirmations.get(email) ?? 0) + 1)
  }

  /** Lists that do not exist, or that the API user may not manage, are left out without a word. */
  function create({
    email,
    name,
    status,
    lists: wanted,
    attribs = {},
    preconfirm_subscriptions,
  }: Received['json']): Said {
    const address = email.trim().toLowerCase()
    if (address.startsWith('refused')) return message(400, pack['subscribers.invalidEmail'])
    if (address.endsWith('@blocked.example')) return message(400, pack['subscribers.domainBlocklisted'])
    const granted = wanted.filter(mayManage)
    if (wanted.length > 0 && granted.length === 0) return denied('lists')
    if (contacts.has(address)) return message(409, pack['subscribers.emailExists'])
    const subscription = preconfirm_subscriptions ? 'confirmed' : 'unconfirmed'
    const made = add(address, { name, status, attribs }, at => on(granted, subscription, at))
    confirm(made)
    return ok(made)
  }

  /** PostgreSQL's `~*` over name and address, the newest first; one row for each list that the API user may see. */
  function search({ search = '', per_page: perPage = '20', ...more }: Received['query']): Said {
    assert.deepEqual(more, {}, 'unknown parameters')
    const pattern = new RegExp(search, 'i')
    const all = [...contacts.values()]
      .filter(each => maySee(each) && (pattern.test(each.name) || pattern.test(each.email)))
      .toReversed()
      .flatMap(each => (fake.granted === null ? [each] : each.lists.filter(({ id }) => mayManage(id)).map(() => each)))
    return ok({ results: all.slice(0, Number(perPage)) })
  }

  function join({ ids: wanted, action, target_list_ids: targets, status }: Received['json']): Said {
    assert.equal(action, 'add')
    for (const id of wanted) if (!maySee(withId(id)!)) return denied(`subscriber: ${id}`)
    const granted: number[] = targets.filter(mayManage)
    if (granted.length === 0) return denied('lists')
    if (!granted.every(id => lists.has(id))) return message(500, 'pq: … violates foreign key constraint …')
    const at = new Date(++now).toISOString()
    for (const each of wanted.map(withId)) {
      each.lists = [...each.lists.filter(({ id }: Membership) => !granted.includes(id)), ...on(granted, status, at)]
    }
    return ok()
  }

  /** Says the same of what is not there. */
  function remove(id: number): Said {
    const found = withId(id)
    if (found !== undefined && !maySee(found)) return denied(`subscriber: ${id}`)
    contacts.delete(found?.email ?? '')
    return ok()
  }

  function ask(id: number): Said {
    const found = withId(id)
    if (found === undefined) return notFound(`Abonnent (${id}: )`)
    if (!maySee(found)) return denied(`subscriber: ${id}`)
    confirm(found)
    return ok()
  }

  function send({ subscriber_id: id, subscriber_email: email, template_id: template }: Received['json']): Said {
    if (!templates.has(template)) return notFound(`template ${template}`)
    const found = id === undefined ? contacts.get(email) : withId(id)
    if (found === undefined) return notFound(`Abonnent (${id ?? 0}: ${email ?? ''})`)
    start(found.email)
    return ok()
  }

  function look(id: number): Said {
    if (!mayManage(id)) return message(403, 'permission denied')
    return lists.has(id) ? ok({ id, name: 'List', optin: lists.get(id) }) : notFound('Liste')
  }

  function profile(): Said {
    const all = fake.granted === null ? ['lists:get_all', 'lists:manage_all'] : []
    const each = [...(fake.granted ?? [])].map(id => ({ id, permissions: ['list:get', 'list:manage'] }))
    const list_role = fake.granted === null ? null : { lists: each }
    return ok({ user_role: { id: 2, permissions: [...fake.permissions, ...all] }, list_role })
  }

  const fake: ListmonkFake = {
    ...facts,
    lists,
    templates,
    granted: null,
    permissions: ['subscribers:get_all', 'subscribers:manage', 'tx:send'],
    answer: vendorApi({
      refuses: ({ headers }) =>
        headers.authorization === 'token waitlist:token-of-the-test'
          ? undefined
          : message(403, 'invalid API credentials'),
      routes: {
        'POST /api/subscribers': taking(creation, ({ json }) => create(json)),
        'GET /api/subscribers': ({ query }) => search(query),
        'PUT /api/subscribers/lists': taking(addition, ({ json }) => join(json)),
        'DELETE /api/subscribers/{id}': ({ at }) => remove(Number(at.id)),
        'POST /api/subscribers/{id}/optin': ({ at }) => ask(Number(at.id)),
        'POST /api/tx': taking(mail, ({ json }) => send(json)),
        'GET /api/lists/{id}': ({ at }) => look(Number(at.id)),
        'GET /api/profile': profile,
        'GET /api/config': () => ok({ lang: 'de' }),
        'GET /api/lang/de': () => ok(pack),
      },
    }),
    put(email, status, memberships = {}) {
      const old = { name: 'Old', status, attribs: { city: 'Berlin' } }
      add(email, old, at => Object.entries(memberships).flatMap(([id, each]) => on([Number(id)], each, at)))
    },
    had: email => fake.put(email, 'enabled'),
    joined: email => [1, 2].every(id => contacts.get(email)?.lists.some(each => each.id === id)),
    confirmations: email => confirmations.get(email) ?? 0,
    on: email => Object.fromEntries(contacts.get(email)!.lists.map(each => [each.id, each.subscription_status])),
  }
  return fake
}
