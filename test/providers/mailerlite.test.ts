import { check, create, notify, notifyAbout, remove, vendorTable } from './table.ts'

const FIND = 'GET /api/subscribers/ada@example.com'
const CREATE = 'POST /api/subscribers'
const GROUP = '75138557045376452'
const id = '73871649530709291'
const fields = { name: 'Ada', last_name: 'King Lovelace' }
const email = 'ada@example.com'
const subscriber = { data: { id, email, status: 'active' } }
const absent = { status: 404, body: { message: 'Resource not found.' } }
const found = { status: 200, body: subscriber }
const made = { status: 201, body: subscriber }
const joined = { status: 200, body: { data: { id: GROUP } } }
const invalid = (...names: string[]) => ({
  status: 422,
  body: { message: 'The given data was invalid.', errors: Object.fromEntries(names.map(name => [name, ['is wrong']])) },
})
const created = { is: 'created', providerId: id }
const unknown = [FIND, absent] as const
const known = [FIND, found] as const
const creation = [CREATE, made] as const

vendorTable(
  'mailerlite',
  url => ({ MAILERLITE_API_KEY: 'mailerlite-key-of-the-test', MAILERLITE_GROUP_ID: GROUP, MAILERLITE_BASE_URL: url }),
  [
    [
      'a new contact',
      create,
      [unknown, [CREATE, { email, fields, opted_in_at: '2026-03-04 05:06:07' }, made]],
      created,
    ],
    ['a known contact', create, [known], { is: 'existing', providerId: id }],
    ['added by another tool after the look-up', create, [unknown, [CREATE, found]], { is: 'existing', providerId: id }],
    ['an invalid address', create, [unknown, [CREATE, invalid('email')]], 'refused'],
    ['another refusal keeps the signup', create, [unknown, [CREATE, invalid('email', 'groups.0')]], /422/],
    ['the group that starts the automation', notify, [[`${CREATE}/${email}/groups/${GROUP}`, joined]], 'delivered'],
    ['the same by the id', notifyAbout({ providerId: id }), [[`${CREATE}/${id}/groups/${GROUP}`, joined]], 'delivered'],
    ['a removal', remove, [known, [`${CREATE}/${id}/forget`, { status: 200 }]], { is: 'removed' }],
    ['a removal of nobody', remove, [unknown], { is: 'absent' }],
    ['a check', check, [[`GET /api/groups/${GROUP}/subscribers?limit=1`, { status: 200 }]], null],
  ],
  [
    [{ MAILERLITE_DOUBLE_OPT_IN: 'true' }, ['double opt-in', create, [unknown, creation], 'created']],
    [
      { MAILERLITE_GROUP_ID: '' },
      ['a check without a group', check, [['GET /api/groups?limit=1', { status: 200 }]], null],
    ],
  ],
)
