import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'

const KEY = 'mailerlite-key-of-the-test'
export const GROUP = '75138557045376452'
export const GROUPS = ['75011449370445335', '75138838590129612']
const ALL = [GROUP, ...GROUPS]

export const mailerliteSettings = (url: string) => ({
  MAILERLITE_API_KEY: KEY,
  MAILERLITE_GROUP_ID: GROUP,
  MAILERLITE_BASE_URL: url,
})
export const mailerliteGroups = { MAILERLITE_GROUP_IDS: GROUPS.join() }

/** Its times are in UTC and do not say so. */
export const timeOf = (date: Date): string => date.toISOString().slice(0, 19).replace('T', ' ')

const ok = (data: unknown, more: object = {}): Said => ({ status: 200, body: { data, ...more } })
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

const MEMBERS = ['email', 'fields', 'groups', 'status', 'opted_in_at']

/** As documented at https://developers.mailerlite.com: a creation updates who exists, and groups are joined once. */
export function mailerliteFake(): VendorFake {
  const { contacts, find, start, facts } = contactBook<Subscriber>()

  function keep(email: string, created: Date, wish: Partial<Subscriber>): Subscriber {
    const { fields = {}, groups = [], status = 'active', opted_in_at = null } = wish
    const id = String(73_871_649_530_709_291n + BigInt(contacts.size))
    const subscriber = { id, email, created_at: timeOf(created), status, opted_in_at, fields, groups }
    contacts.set(email, subscriber)
    return subscriber
  }

  const shown = ({ groups, ...more }: Subscriber) => ({ ...more, groups: groups.map(id => ({ id })) })

  /** 201 for a new one, 200 for one that is changed. */
  function upsert(wish: Received['json']): Said {
    const { email, fields = {}, groups = [], status, opted_in_at: at } = wish
    const other = Object.keys(wish).find(name => !MEMBERS.includes(name))
    if (other !== undefined) return invalid(other, 'It is not for us to send.')
    if (at !== undefined && !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(at)) return invalid('opted_in_at', 'No time.')
    if (!/^[^@\s]+@[^@\s]+\.\w+$/.test(email) || email.startsWith('refused')) {
      return invalid('email', 'The email must be a valid email address.')
    }
    const unknown = groups.findIndex((each: string) => !ALL.includes(each))
    if (unknown >= 0) return invalid(`groups.${unknown}`, `The selected groups.${unknown} is invalid.`)
    const known = contacts.get(email)
    if (known === undefined) return { status: 201, body: { data: shown(keep(email, new Date(), wish)) } }
    const merged = { fields: { ...known.fields, ...fields }, groups: [...new Set([...known.groups, ...groups])] }
    const changed = { ...known, ...merged, status: status ?? known.status }
    contacts.set(email, changed)
    return ok(shown(changed))
  }

  function join(id: string | undefined, group: string): Said {
    const found = find(each => each.id === id || each.email === id)
    if (found === undefined || !ALL.includes(group)) return notFound
    if (!found.groups.includes(group)) {
      contacts.set(found.email, { ...found, groups: [...found.groups, group] })
      if (group === GROUP) start(found.email)
    }
    return ok({ id: group, name: 'Waitlist' })
  }

  function forget(id: string | undefined): Said {
    const found = find(each => each.id === id)
    if (found === undefined) return notFound
    contacts.delete(found.email)
    return ok(shown(found), { message: 'Subscriber data will be completely deleted and forgotten within 30 days.' })
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses({ headers: { authorization, accept, 'content-type': type } }) {
        if (authorization !== `Bearer ${KEY}`) return { status: 401, body: { message: 'Unauthenticated.' } }
        const isJson = accept?.includes('application/json') && type === 'application/json'
        return isJson ? undefined : { status: 406, body: {} }
      },
      routes: {
        'GET /api/groups': () => ok([]),
        'GET /api/groups/{group}/subscribers': ({ at }) => (ALL.includes(at.group!) ? ok([]) : notFound),
        'POST /api/subscribers': ({ json }) => upsert(json),
        'GET /api/subscribers/{email}': ({ at }) => {
          const found = contacts.get(at.email!)
          return found === undefined ? notFound : ok(shown(found))
        },
        'POST /api/subscribers/{id}/groups/{group}': ({ at }) => join(at.id, at.group!),
        'POST /api/subscribers/{id}/forget': ({ at }) => forget(at.id),
      },
    }),
    had: email => void keep(email, new Date('2020-01-01'), { fields: { name: 'Old', last_name: null } }),
    joined: email => GROUPS.every(group => contacts.get(email)?.groups.includes(group)),
  }
}
