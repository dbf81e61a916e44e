import { ada, check, create, createFor, createInDoubt, remove, vendorTable } from './table.ts'

const BASE = '/ghost/api/admin/members/'
const CREATE = `POST ${BASE}`
const FIND = `GET ${BASE}?filter=email:'ada@example.com'`
const id = '65a1b2c3d4e5f60718293a4b'
const member = { email: 'ada@example.com', name: 'Ada King Lovelace', note: `waitlist ${ada.id}` }
const made = { status: 201, body: { members: [{ id, ...member }] } }
const members = (...all: object[]) => ({ status: 200, body: { members: all } })
const error = (status: number, context: string, property = 'email') => ({
  status,
  body: { errors: [{ message: 'Validation error, cannot save member.', context, property }] },
})
const known = error(422, 'Attempting to add member with existing email address')
const search = [FIND, members({ id })] as const

vendorTable(
  'ghost',
  url => ({ GHOST_BASE_URL: url, GHOST_ADMIN_API_KEY: `${'0a'.repeat(12)}:${'b1'.repeat(32)}` }),
  [
    ['a new contact', create, [[CREATE, { members: [member] }, made]], { is: 'created', providerId: id }],
    [
      'a name that begins with a comma',
      createFor({ name: ', Ada' }),
      [[CREATE, { members: [{ ...member, name: 'Ada' }] }, made]],
      'created',
    ],
    ['a known contact', create, [[CREATE, known]], { is: 'existing' }],
    ['in doubt, a known contact counts as created', createInDoubt, [[CREATE, known]], 'created'],
    ['an invalid address', create, [[CREATE, error(422, 'Invalid Email')]], 'refused'],
    [
      'another refusal keeps the signup',
      create,
      [[CREATE, error(422, 'Value in [members.name] exceeds', 'name')]],
      /exceeds/,
    ],
    [
      'a wrong key',
      create,
      [[CREATE, { status: 401, body: { errors: [{ message: 'Unknown Admin API Key' }] } }]],
      /Unknown Admin/,
    ],
    ['a success without an id', create, [[CREATE, { status: 201, body: { members: [] } }]], 'in doubt'],
    ['a creation that fails leaves doubt', create, [[CREATE, { status: 500 }]], 'in doubt'],
    ['a removal', remove, [search, [`DELETE ${BASE}${id}/`, { status: 204 }]], { is: 'removed' }],
    ['a removal of nobody', remove, [[FIND, members()]], { is: 'absent' }],
    ['a removal that is cut off', remove, [[FIND, { status: 200, body: '{"members":[' }]], 'unreachable'],
    ['a check', check, [[`GET ${BASE}?limit=1&fields=id`, members()]], null],
    [
      'a check of a wrong site',
      check,
      [[`GET ${BASE}?limit=1&fields=id`, { status: 302, headers: { location: '/' } }]],
      /redirects/,
    ],
  ],
  [
    [
      { GHOST_LABELS: 'Waitlist', GHOST_NEWSLETTER_IDS: 'n1' },
      [
        'labels and newsletters',
        create,
        [[CREATE, { members: [{ ...member, labels: ['Waitlist'], newsletters: [{ id: 'n1' }] }] }, made]],
        'created',
      ],
    ],
  ],
)
