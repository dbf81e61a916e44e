import { ada, check, create, createFor, remove, vendorTable } from './table.ts'

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
    ['an invalid address', create, [[CREATE, error(422, 'Invalid Email')]], 'refused'],
    [
      'another refusal keeps the signup',
      create,
      [[CREATE, error(422, 'Value in [members.name] exceeds', 'name')]],
      /exceeds/,
    ],
    ['a removal', remove, [search, [`DELETE ${BASE}${id}/`, { status: 204 }]], { is: 'removed' }],
    ['a removal of nobody', remove, [[FIND, members()]], { is: 'absent' }],
    ['a check', check, [[`GET ${BASE}?limit=1&fields=id`, members()]], null],
  ],
  [
    [
      { GHOST_LABELS: 'Waitlist' },
      ['labels', create, [[CREATE, { members: [{ ...member, labels: ['Waitlist'] }] }, made]], 'created'],
    ],
  ],
)
