import { check, create, createFor, notify, notifyAbout, remove, vendorTable } from './table.ts'

const LOOKUP = 'POST /contacts/lookup'
const CREATE = 'POST /contacts'
const TRACK = 'POST /v1/track'
const FIND = 'GET /contacts?search=ada@example.com&limit=100'
const email = 'ada@example.com'
const data = { firstName: 'Ada', lastName: 'King Lovelace' }
const absent = { status: 200, body: { found: [], notFound: [email] } }
const found = { status: 200, body: { found: [email], notFound: [] } }
const made = { status: 201, body: { id: 'c-1', email, _meta: { isNew: true, isUpdate: false } } }
const updated = { status: 200, body: { ...made.body, _meta: { isNew: false, isUpdate: true } } }
const tracked = { status: 200, body: { success: true, data: { contact: 'c-1', event: 'e-1' } } }
const error = (statusCode: number, code: string, more = {}) => ({
  status: statusCode,
  body: { success: false, error: { code, statusCode, ...more } },
})
const used = (originalStatusCode: number | null) =>
  error(409, 'IDEMPOTENCY_KEY_REUSED', { details: { originalStatusCode } })
const listed = (...all: string[]) => ({ status: 200, body: { data: all.map((email, i) => ({ id: `c-${i}`, email })) } })
const crowd = Array.from({ length: 100 }, (_, i) => `${i}${email}`)
const unknown = [LOOKUP, absent] as const
const known = [LOOKUP, found] as const

vendorTable(
  'plunk',
  url => ({ PLUNK_SECRET_KEY: 'sk_of-the-test', PLUNK_PUBLIC_KEY: 'pk_of-the-test', PLUNK_BASE_URL: url }),
  [
    [
      'a new contact',
      create,
      [
        [LOOKUP, { emails: [email] }, absent],
        [CREATE, { email, data }, made],
      ],
      { is: 'created', providerId: 'c-1' },
    ],
    [
      'a source',
      createFor({ source: { ref: 'x' } }),
      [unknown, [CREATE, { email, data: { ...data, ref: 'x' } }, made]],
      'created',
    ],
    ['a known contact', create, [known], { is: 'existing' }],
    [
      'added by another tool after the look-up',
      create,
      [unknown, [CREATE, updated]],
      { is: 'existing', providerId: 'c-1' },
    ],
    ['a look-up that says nothing leaves no doubt', create, [[LOOKUP, { status: 200, body: {} }]], 'unreachable'],
    [
      'an invalid address',
      create,
      [unknown, [CREATE, error(422, 'VALIDATION_ERROR', { errors: [{ field: 'email' }] })]],
      'refused',
    ],
    [
      'another refusal keeps the signup',
      create,
      [unknown, [CREATE, error(422, 'VALIDATION_ERROR', { errors: [{ field: 'data' }] })]],
      /422/,
    ],
    ['an event', notify, [[TRACK, { event: 'waitlist.joined', email }, tracked]], 'delivered'],
    [
      'an event with a code',
      notifyAbout({}, 'c0de'),
      [[TRACK, { event: 'waitlist.joined', email, data: { code: 'c0de' } }, tracked]],
      'delivered',
    ],
    ['a repeated event is recognised', notify, [[TRACK, used(200)]], 'delivered'],
    ['Plunk itself repeats one that failed there', notify, [[TRACK, used(500)]], 'delivered'],
    ['the first request for an event is under way', notify, [[TRACK, used(null)]], 'in doubt'],
    [
      'a removal',
      remove,
      [
        [FIND, listed(`x${email}`, email)],
        ['DELETE /contacts/c-1', { status: 204 }],
      ],
      { is: 'removed' },
    ],
    ['a removal of nobody, with look-alikes', remove, [[FIND, listed(`x${email}`)]], { is: 'absent' }],
    ['a removal among too many look-alikes', remove, [[FIND, listed(...crowd)]], 'by hand'],
    ['a check', check, [['GET /contacts?limit=1', listed()]], null],
  ],
)
