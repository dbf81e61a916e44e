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

interface Subscriber {
  readonly id: number
  readonly uuid: string
  readonly email: string
  readonly name: string
  readonly status: string
  readonly attribs: Record<string, unknown>
  lists: { readonly id: number; readonly subscription_status: string }[]
}

export interface ListmonkFake extends VendorFake {
  /** Lists that there are, and that the API user may manage. */
  readonly lists: Set<number>
  readonly templates: Set<number>
}

const message = (status: number, text: string): Said => ({ status, body: { message: text } })

/** As in listmonk's own source: unique addresses, lists that are not allowed are left out without a word. */
export function listmonkFake(): ListmonkFake {
  const subscribers = new Map<string, Subscriber>()
  const starts = new Map<string, number>()
  const lists = new Set([1, 2])
  const templates = new Set([5])
  let ids = 0

  const subscribed = (wanted: number[]) =>
    wanted.filter(id => lists.has(id)).map(id => ({ id, subscription_status: 'unconfirmed' }))

  function create({ email, name, status, lists: wanted, attribs = {} }: Asked['json']): Said {
    const address = email.trim().toLowerCase()
    if (address.startsWith('refused')) return message(400, 'Ungültige E-Mail-Adresse.')
    if (wanted.length > 0 && subscribed(wanted).length === 0) return message(403, 'Permission denied: lists')
    if (subscribers.has(address)) return message(409, 'E-Mail existiert bereits.')
    const id = ++ids
    const data = { id, uuid: `uuid-${id}`, email: address, name, status, attribs, lists: subscribed(wanted) }
    subscribers.set(address, data)
    return { status: 200, body: { data } }
  }

  /** PostgreSQL's `~*` over name and address. */
  function find({ search = '', per_page: perPage = '20', ...more }: Asked['query']): Said {
    assert.deepEqual(more, {}, 'unknown parameters')
    const pattern = new RegExp(search, 'i')
    const all = [...subscribers.values()].filter(each => pattern.test(each.name) || pattern.test(each.email)).reverse()
    const results = all.slice(0, Number(perPage))
    return { status: 200, body: { data: { results, total: all.length, page: 1, per_page: Number(perPage) } } }
  }

  function add({ ids: wanted, action, target_list_ids: targets }: Asked['json']): Said {
    assert.equal(action, 'add')
    for (const each of subscribers.values()) if (wanted.includes(each.id)) each.lists.push(...subscribed(targets))
    return { status: 200, body: { data: true } }
  }

  function send({ subscriber_id: id, subscriber_email: email, template_id: template }: Asked['json']): Said {
    if (!templates.has(template)) return message(400, 'Vorlage nicht gefunden.')
    const found = [...subscribers.values()].find(each => each.id === id || each.email === email)
    if (found === undefined) return message(400, 'Abonnent nicht gefunden.')
    starts.set(found.email, (starts.get(found.email) ?? 0) + 1)
    return { status: 200, body: { data: true } }
  }

  function answer({ method, path, query, headers, json }: Asked): Said {
    if (headers.authorization !== 'token waitlist:token-of-the-test') return message(403, 'invalid API credentials')
    switch (`${method} ${path}`) {
      case 'POST /api/subscribers':
        return create(json)
      case 'GET /api/subscribers':
        return find(query)
      case 'PUT /api/subscribers/lists':
        return add(json)
      case 'POST /api/tx':
        return send(json)
      default: {
        const id = Number(path.slice('/api/lists/'.length))
        return lists.has(id) ? { status: 200, body: { data: { id, name: 'List' } } } : message(400, 'Nicht gefunden.')
      }
    }
  }

  return {
    lists,
    templates,
    answer: documented(listmonkContract, answer),
    had(email) {
      const id = ++ids
      const old = { name: 'Old', status: 'enabled', attribs: { city: 'Berlin' }, lists: [] }
      subscribers.set(email, { id, uuid: `uuid-${id}`, email, ...old })
    },
    kept: email => subscribers.get(email),
    count: email => (subscribers.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
