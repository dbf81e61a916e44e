import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'

const KEY = 'mailerlite-key-of-the-test'
export const GROUP = '75138557045376452'
export const GROUPS = ['75011449370445335', '75138838590129612']

export const mailerliteSettings = (url: string) => ({
  MAILERLITE_API_KEY: KEY,
  MAILERLITE_GROUP_ID: GROUP,
  MAILERLITE_BASE_URL: url,
})

export const mailerliteGroups = { MAILERLITE_GROUP_IDS: GROUPS.join() }

/** Its times are in UTC and do not say so. */
export const timeOf = (date: Date): string => date.toISOString().slice(0, 19).replace('T', ' ')

const notFound: Said = { status: 404, body: { message: 'Resource not found.' } }
const invalid = (field: string, text: string): Said => ({
  status: 422,
  body: { message: 'The given data was invalid.', errors: { [field]: [text] } },
})

interface Subscriber {
  readonly id: string
  readonly email: string
  readonly created_at: string
  readonly status: string
  readonly opted_in_at: string | null
  readonly fields: Readonly<Record<string, unknown>>
  readonly groups: readonly string[]
}

interface Wish {
  readonly email?: unknown
  readonly fields?: Record<string, unknown>
  readonly groups?: readonly string[]
  readonly status?: string
  readonly opted_in_at?: string
}

const MEMBERS = ['email', 'fields', 'groups', 'status', 'opted_in_at']

/** As documented at https://developers.mailerlite.com: a creation updates who exists, and groups are joined once. */
export function mailerliteFake(): VendorFake {
  const subscribers = new Map<string, Subscriber>()
  const starts = new Map<string, number>()

  function keep(email: string, created: Date, wish: Wish): Subscriber {
    const { fields = {}, groups = [], status = 'active', opted_in_at = null } = wish
    const id = String(73_871_649_530_709_291n + BigInt(subscribers.size))
    const subscriber = { id, email, created_at: timeOf(created), status, opted_in_at, fields, groups }
    subscribers.set(email, subscriber)
    return subscriber
  }

  const shown = ({ groups, ...more }: Subscriber) => ({
    data: { ...more, source: 'api', groups: groups.map(id => ({ id })) },
  })

  /** 201 for a new one, 200 for one that is changed. */
  function upsert(wish: Wish): Said {
    const { email, fields = {}, groups = [], status, opted_in_at: at } = wish
    const other = Object.keys(wish).find(name => !MEMBERS.includes(name))
    if (other !== undefined) return invalid(other, 'It is not for us to send.')
    if (at !== undefined && !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(at)) return invalid('opted_in_at', 'No time.')
    if (typeof email !== 'string' || !/^[^@\s]+@[^@\s]+\.\w+$/.test(email) || email.startsWith('refused')) {
      return invalid('email', 'The email must be a valid email address.')
    }
    const unknown = groups.findIndex(each => ![GROUP, ...GROUPS].includes(each))
    if (unknown >= 0) return invalid(`groups.${unknown}`, `The selected groups.${unknown} is invalid.`)
    const known = subscribers.get(email)
    if (known === undefined) return { status: 201, body: shown(keep(email, new Date(), wish)) }
    const changed = {
      ...known,
      status: status ?? known.status,
      fields: { ...known.fields, ...fields },
      groups: [...new Set([...known.groups, ...groups])],
    }
    subscribers.set(email, changed)
    return { status: 200, body: shown(changed) }
  }

  function join(id: string, group: string): Said {
    const found = [...subscribers.values()].find(each => each.id === id || each.email === id)
    if (found === undefined || ![GROUP, ...GROUPS].includes(group)) return notFound
    if (!found.groups.includes(group)) {
      subscribers.set(found.email, { ...found, groups: [...found.groups, group] })
      if (group === GROUP) starts.set(found.email, (starts.get(found.email) ?? 0) + 1)
    }
    return {
      status: 200,
      body: { data: { id: group, name: 'Waitlist', active_count: 1, created_at: timeOf(new Date()) } },
    }
  }

  function forget(id: string): Said {
    const found = [...subscribers.values()].find(each => each.id === id)
    if (found === undefined) return notFound
    subscribers.delete(found.email)
    const times = { deleted_at: timeOf(new Date()), forget_at: timeOf(new Date(Date.now() + 30 * 86_400_000)) }
    const message = 'Subscriber data will be completely deleted and forgotten within 30 days.'
    return { status: 200, body: { message, data: { ...shown(found).data, ...times } } }
  }

  function answer({ method, path, segments, json }: Asked): Said {
    const [, api, what, id = '', more, group = ''] = segments
    if (api !== 'api') return notFound
    if (method === 'GET' && path === '/api/groups') return { status: 200, body: { data: [], meta: {} } }
    if (method === 'GET' && what === 'groups') {
      return [GROUP, ...GROUPS].includes(id) && more === 'subscribers'
        ? { status: 200, body: { data: [], meta: {} } }
        : notFound
    }
    if (what !== 'subscribers') return notFound
    if (method === 'POST' && id === '') return upsert(json ?? {})
    if (method === 'POST' && more === 'groups') return join(id, group)
    if (method === 'POST' && more === 'forget') return forget(id)
    const found = method === 'GET' && more === undefined ? subscribers.get(id) : undefined
    return found === undefined ? notFound : { status: 200, body: shown(found) }
  }

  return {
    answer(asked) {
      const { authorization, accept, 'content-type': type } = asked.headers
      if (authorization !== `Bearer ${KEY}`) return { status: 401, body: { message: 'Unauthenticated.' } }
      if (!accept?.includes('application/json') || type !== 'application/json') return { status: 406, body: {} }
      return answer(asked)
    },
    had: email => void keep(email, new Date('2020-01-01'), { fields: { name: 'Old', last_name: null } }),
    kept: email => subscribers.get(email),
    count: email => (subscribers.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
    joined: email => GROUPS.every(group => subscribers.get(email)!.groups.includes(group)),
  }
}
