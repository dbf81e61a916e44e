import { check, create, createInDoubt, notify, notifyAbout, remove, vendorTable } from './table.ts'

const FIND = 'GET /contacts/ada@example.com'
const CREATE = 'POST /contacts'
const SEND = 'POST /events/send'
const DELETE = 'DELETE /contacts/ada@example.com'
const SEGMENT = '78261eea-8f8b-4381-83c6-79fa7120f1cf'
const id = 'e169aa45-1ecf-4183-9955-b1499d5701d3'
const email = 'ada@example.com'
const full = { email, first_name: 'Ada', last_name: 'King Lovelace' }
const error = (statusCode: number, name: string, message = '') => ({
  status: statusCode,
  body: { statusCode, name, message },
})
const absent = error(404, 'not_found', 'Contact not found')
const found = { status: 200, body: { object: 'contact', id, email } }
const made = { status: 201, body: { object: 'contact', id } }
const sent = { status: 202, body: { object: 'event', event: 'waitlist.joined' } }
const invalid = error(422, 'validation_error', 'The `email` field is invalid.')
const unknown = [FIND, absent] as const
const known = [FIND, found] as const
const creation = [CREATE, made] as const

vendorTable(
  'resend',
  url => ({ RESEND_API_KEY: 're_key-of-the-test', RESEND_BASE_URL: url }),
  [
    ['a new contact', create, [unknown, [CREATE, full, made]], { is: 'created', providerId: id }],
    ['a known contact', create, [known], { is: 'existing', providerId: id }],
    ['in doubt, a known contact counts as created', createInDoubt, [known], { is: 'created', providerId: id }],
    ['a look-up that fails leaves no doubt', create, [[FIND, error(500, 'internal_server_error')]], 'unreachable'],
    ['a look-up without an id leaves no doubt', create, [[FIND, { status: 200, body: {} }]], 'unreachable'],
    ['a creation that fails leaves doubt', create, [unknown, [CREATE, error(500, 'application_error')]], 'in doubt'],
    ['an invalid address', create, [unknown, [CREATE, invalid]], 'refused'],
    [
      'another refusal keeps the signup',
      create,
      [unknown, [CREATE, error(422, 'validation_error', 'The property `email_source` does not exist.')]],
      /422 .*does not exist/,
    ],
    ['an event by the address', notify, [[SEND, { event: 'waitlist.joined', email }, sent]], 'delivered'],
    [
      'an event by the id, with source and code',
      notifyAbout({ providerId: id, source: { ref: 'x' } }, 'c0de'),
      [[SEND, { event: 'waitlist.joined', contact_id: id, payload: { ref: 'x', code: 'c0de' } }, sent]],
      'delivered',
    ],
    ['an event by the id', notifyAbout({ providerId: id }), [[SEND, sent]], 'delivered'],
    ['a removal', remove, [[DELETE, { status: 200, body: { object: 'contact', deleted: true } }]], { is: 'removed' }],
    ['a check', check, [['GET /contacts?limit=1', { status: 200, body: { data: [] } }]], null],
  ],
  [
    [
      { RESEND_SEGMENT_IDS: SEGMENT },
      ['a segment', create, [unknown, creation], 'created'],
      ['a check of a segment', check, [[`GET /segments/${SEGMENT}`, absent]], /404/],
    ],
    [
      { PROVIDER_FIELDS: 'plan=early' },
      ['fields', create, [unknown, [CREATE, { ...full, properties: { plan: 'early' } }, made]], 'created'],
    ],
  ],
)
