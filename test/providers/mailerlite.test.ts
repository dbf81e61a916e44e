import { contactOf, providerContract, type VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'
import { check, create, createAgain, remove, start, vendorTable, waitAfter } from './table.ts'

const KEY = 'mailerlite-key-of-the-test'
const GROUP = '75138557045376452'
const GROUPS = ['75011449370445335', '75138838590129612']
const ALL = [GROUP, ...GROUPS]

const mailerliteSettings = (url: string) => ({
  MAILERLITE_API_KEY: KEY,
  MAILERLITE_GROUP_ID: GROUP,
  MAILERLITE_BASE_URL: url,
})
const mailerliteGroups = { MAILERLITE_GROUP_IDS: GROUPS.join() }

/** Its times are in UTC and do not say so. */
const timeOf = (date: Date): string => date.toISOString().slice(0, 19).replace('T', ' ')

const ok = (data: unknown, more: object = {}): Said => ({ status: 200, body: { data, ...more } })
const notFound: Said = { status: 404, body: { message: 'Resource not found.' } }
const invalid = (errors?: object): Said => ({ status: 422, body: { message: 'The email is not valid.', errors } })

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
function mailerliteFake(): VendorFake {
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
    if (other !== undefined) return invalid({ [other]: ['It is not for us to send.'] })
    if (at !== undefined && !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(at)) return invalid({ opted_in_at: ['No time.'] })
    if (!/^[^@\s]+@[^@\s]+\.\w+$/.test(email) || email.startsWith('refused')) {
      return invalid({ email: ['The email must be a valid email address.'] })
    }
    const unknown = groups.findIndex((each: string) => !ALL.includes(each))
    if (unknown >= 0) return invalid({ [`groups.${unknown}`]: [`The selected groups.${unknown} is invalid.`] })
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

const mailerlite = {
  vendor: 'mailerlite',
  settings: mailerliteSettings,
  wrongKey: { MAILERLITE_API_KEY: 'another-key' },
  wrongSetting: { MAILERLITE_GROUP_IDS: `${GROUPS[0]},1` },
  fake: mailerliteFake,
  refused: 'refused@example.com',
  joining: {
    settings: mailerliteGroups,
    members: ['groups'],
    each: {
      setting: 'MAILERLITE_GROUP_IDS',
      path: /^\/api\/subscribers\/\d+\/groups\/(\d+)$/,
      added: (id: string) => ({ status: 200, body: { data: { id } } }),
      atCreation: true,
    },
  },
  start: {
    path: /^\/api\/subscribers\/[^/]+\/groups\/[^/]+$/,
    done: { status: 200, body: { data: { id: GROUP } } },
    id: ({ path }: Received) => path.split('/')[3],
  },
} as const
providerContract(mailerlite)

const { rows, answers, sameRequests, contradictions } = vendorTable(mailerlite)
// Times without a zone must not be taken for those of this machine.
process.env.TZ = 'Pacific/Auckland'
const ID = '73871649530709291'
const ada = contactOf('ada@example.com', { createdAt: new Date('2026-03-04T05:06:07.89Z') })
const odd = contactOf('a%41?b#c@example.com')
const FIND = `GET /api/subscribers/${ada.email}`
const CREATE = 'POST /api/subscribers'

sameRequests('with a group that starts the automation', {
  ours: [
    [create(ada), { is: 'created', providerId: ID }],
    [createAgain(ada), { is: 'existing', providerId: ID, ours: true }],
    [start({ ...ada, providerId: ID }), 'delivered'],
    [check, null],
    [remove(), 'removed'],
    [remove(), 'absent'],
  ],
})

sameRequests('with groups and double opt-in', {
  set: { ...mailerliteGroups, MAILERLITE_DOUBLE_OPT_IN: 'true', PROVIDER_EXISTING: 'join' },
  ours: [
    [create(ada), 'created'],
    [create(ada), 'existing'],
    [check, null],
  ],
})

rows({
  'somebody who exists is looked up, and that is all': {
    had: ada.email,
    calls: [[create(ada), { is: 'existing', providerId: ID, ours: false }, FIND]],
  },
  'any address is looked for': { calls: [[create(odd), 'created', `GET /api/subscribers/${odd.email}`, CREATE]] },
  'a new contact joins the groups at once, but not the one of the automation': {
    set: mailerliteGroups,
    calls: [[create(ada), 'created', FIND, CREATE]],
    keeps: { status: 'active', groups: GROUPS },
  },
  'without a group there is no automation, and the check tries the key': {
    set: { MAILERLITE_GROUP_ID: '' },
    calls: [
      [async ({ automation }) => automation, null],
      [check, null, 'GET /api/groups?limit=1'],
    ],
  },
  'the group of the automation is joined by address where the id is not known': {
    had: ada.email,
    calls: [[start(ada), { is: 'delivered' }, `POST /api/subscribers/${ada.email}/groups/${GROUP}`]],
  },
  'the check names the group that is not there': {
    set: { MAILERLITE_GROUP_IDS: `${GROUPS[0]},7,${GROUPS[1]}` },
    calls: [
      [
        check,
        /^look for the group 7:/,
        ...[GROUP, GROUPS[0], '7'].map(id => `GET /api/groups/${id}/subscribers?limit=1`),
      ],
    ],
  },
  'a 429 waits as long as it says': {
    says: { status: 429, body: { message: 'Too Many Attempts.' }, headers: { 'retry-after': '38' } },
    calls: [[waitAfter(create(ada)), 38_000]],
  },
})

const added = (status: number, created: Date): Said => ({
  status,
  body: { data: { id: ID, created_at: timeOf(created) } },
})
answers(
  'a creation',
  create(ada),
  [
    // Somebody was added since the look-up.
    [added(200, new Date('2020-01-01')), { is: 'existing', providerId: ID, ours: false }],
    [added(200, ada.createdAt), { is: 'existing', providerId: ID, ours: true }],
    [added(201, ada.createdAt), { is: 'created', providerId: ID }],
    [{ status: 404, body: { message: 'No.' } }, 'misconfigured'],
    [invalid({ email: ['It is not valid.'] }), 'refused'],
    [invalid({ email: ['No.'], fields: ['No.'] }), 'misconfigured'],
    [invalid({ fields: ['No.'] }), 'misconfigured'],
    [invalid(), 'misconfigured'],
    [invalid({ 'groups.0': ['No email.'] }), 'misconfigured'],
    [{ status: 202, body: { data: { id: ID } } }, 'unclear'],
    [{ status: 200, body: { data: {} } }, 'unclear'],
    [{ status: 200, body: { data: null } }, 'unclear'],
  ],
  { to: 'POST' },
)
answers('a look-up', create(ada), [
  [{ status: 403, body: { message: 'No.' } }, 'misconfigured'],
  [{ status: 200, body: { data: {} } }, 'unreached'],
])
answers('a start', start(ada), [
  [{ status: 404, body: { message: 'Resource not found.' } }, 'misconfigured'],
  [{ status: 200, body: { data: { id: '1' } } }, 'unclear'],
])

/** Minutes between the signup and what is found, and whether that is ours: two clocks may differ by one. */
const ages: readonly (readonly [minutes: number, ours: boolean])[] = [
  [0, true],
  [5, true],
  [-0.5, true],
  [-2, false],
  [-600, false],
]
answers('in doubt, a look-up', createAgain(ada), [
  ...ages.map(([minutes, ours]) => {
    const said = added(200, new Date(ada.createdAt.getTime() + minutes * 60_000))
    return [said, { is: 'existing', providerId: ID, ours }] as const
  }),
  [
    { status: 200, body: { data: { id: ID, created_at: 'soon' } } },
    { is: 'existing', providerId: ID, ours: undefined },
  ],
])

contradictions([[{ MAILERLITE_GROUP_IDS: `7,${GROUP}` }, /^MAILERLITE_GROUP_IDS must not have/]])
