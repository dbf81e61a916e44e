import { check, create, createInDoubt, EVENT, notify, notifyAbout, remove, vendorTable } from './table.ts'

const CREATE = 'POST /api/profiles'
const LIST = 'POST /api/lists/LiSt01/relationships/profiles'
const SEND = 'POST /api/events'
const FIND = 'GET /api/profiles?filter=equals(email,"ada@example.com")&fields[profile]=email'
const DELETE = 'POST /api/data-privacy-deletion-jobs'
const GET = 'GET /api/profiles/01PROFILE1?additional-fields[profile]=subscriptions&fields[profile]=subscriptions'
const SUBSCRIBE = 'POST /api/profile-subscription-bulk-create-jobs'
const id = '01PROFILE1'
const email = 'ada@example.com'
const made = { status: 201, body: { data: { type: 'profile', id } } }
const error = (status: number, more = {}) => ({ status, body: { errors: [{ status, ...more }] } })
const known = error(409, { meta: { duplicate_profile_id: id } })
const invalid = error(400, { source: { pointer: '/data/attributes/email' } })
const attributes = { email, first_name: 'Ada', last_name: 'King Lovelace' }
const metric = { data: { type: 'metric', attributes: { name: 'waitlist.joined' } } }
const profile = { data: { type: 'profile', attributes: { email } } }
const eventWith = (properties: object) => ({
  data: { type: 'event', attributes: { properties, metric, profile, unique_id: EVENT } },
})
const shown = (marketing: object) => ({
  status: 200,
  body: { data: { id, attributes: { subscriptions: { email: { marketing } } } } },
})
const created = { is: 'created', providerId: id }
const creation = [CREATE, made] as const
const conflict = [CREATE, known] as const
const search = [FIND, { status: 200, body: { data: [{ id }] } }] as const
const deletion = [DELETE, { status: 202 }] as const
const listed = [LIST, { status: 204 }] as const

vendorTable(
  'klaviyo',
  url => ({ KLAVIYO_API_KEY: 'klaviyo-key-of-the-test', KLAVIYO_LIST_ID: 'LiSt01', KLAVIYO_BASE_URL: url }),
  [
    ['a new contact', create, [[CREATE, { data: { type: 'profile', attributes } }, made], listed], created],
    ['a known contact', create, [conflict], { is: 'existing', providerId: id }],
    ['a known contact without an id', create, [[CREATE, error(409)]], 'existing'],
    [
      'in doubt, a known contact counts as created',
      createInDoubt,
      [conflict, [LIST, { data: [{ type: 'profile', id }] }, { status: 204 }]],
      created,
    ],
    ['in doubt, a known contact without an id', createInDoubt, [[CREATE, error(409)]], 'created'],
    ['a list that is gone leaves doubt', create, [creation, [LIST, error(404)]], 'in doubt'],
    ['an invalid address', create, [[CREATE, invalid]], 'refused'],
    [
      'another refusal keeps the signup',
      create,
      [[CREATE, error(400, { detail: 'first_name is too long' })]],
      /too long/,
    ],
    ['an event by the address', notify, [[SEND, eventWith({}), { status: 202 }]], 'delivered'],
    [
      'an event with source and code',
      notifyAbout({ source: { ref: 'x' } }, 'c0de'),
      [[SEND, eventWith({ ref: 'x', code: 'c0de' }), { status: 202 }]],
      'delivered',
    ],
    ['an event by the id', notifyAbout({ providerId: id }), [[SEND, { status: 202 }]], 'delivered'],
    ['a removal', remove, [search, deletion], { is: 'removed' }],
    ['a removal of nobody', remove, [[FIND, { status: 200, body: { data: [] } }]], { is: 'absent' }],
    [
      'a check',
      check,
      [
        ['GET /api/profiles?fields[profile]=created&page[size]=1', { status: 200 }],
        ['GET /api/lists/LiSt01?fields[list]=name', { status: 200 }],
      ],
      null,
    ],
  ],
  [
    [
      { KLAVIYO_CONSENT: 'true' },
      [
        'consent',
        create,
        [creation, [GET, shown({ consent: 'NEVER_SUBSCRIBED', suppression: [] })], [SUBSCRIBE, { status: 202 }]],
        created,
      ],
      ['who has unsubscribed stays so', createInDoubt, [conflict, [GET, shown({ consent: 'UNSUBSCRIBED' })]], created],
      ['who is suppressed stays so', createInDoubt, [conflict, [GET, shown({ suppression: [{}] })]], created],
    ],
    [{ KLAVIYO_LIST_ID: '' }, ['no list', create, [creation], created]],
  ],
)
