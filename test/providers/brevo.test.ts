import { check, create, notify, notifyAbout, remove, vendorTable } from './table.ts'

const CREATE = 'POST /v3/contacts'
const SEND = 'POST /v3/events'
const DELETE = 'DELETE /v3/contacts/ada@example.com?identifierType=email_id'
const email = 'ada@example.com'
const attributes = { FIRSTNAME: 'Ada', LASTNAME: 'King Lovelace' }
const error = (code: string, message: string, more = {}) => ({ status: 400, body: { code, message, ...more } })
const made = { status: 201, body: { id: 1 } }
const known = error('duplicate_parameter', 'Unable to create contact, email is already associated')
const event = { event_name: 'waitlist_joined', identifiers: { email_id: email } }

vendorTable(
  'brevo',
  url => ({ BREVO_API_KEY: 'xkeysib-of-the-test', BREVO_BASE_URL: url }),
  [
    [
      'a new contact',
      create,
      [[CREATE, { email, attributes, updateEnabled: false }, made]],
      { is: 'created', providerId: '1' },
    ],
    ['a known contact', create, [[CREATE, known]], { is: 'existing' }],
    [
      'a known contact by the metadata',
      create,
      [[CREATE, error('invalid_parameter', 'x', { metadata: { duplicate_identifiers: ['email'] } })]],
      'existing',
    ],
    ['an invalid address', create, [[CREATE, error('invalid_parameter', 'Invalid email address')]], 'refused'],
    [
      'another refusal keeps the signup',
      create,
      [[CREATE, error('invalid_parameter', 'List ID is invalid')]],
      /List ID/,
    ],
    [
      'a limit that says how long to wait',
      create,
      [[CREATE, { status: 429, headers: { 'x-sib-ratelimit-reset': '7' } }]],
      { is: 'rate limited', why: 'create a contact: answered with 429', retryAfter: 7_000 },
    ],
    ['an event by the address', notify, [[SEND, event, { status: 204 }]], 'delivered'],
    [
      'an event by the id',
      notifyAbout({ providerId: '1' }),
      [[SEND, { ...event, identifiers: { contact_id: 1 } }, { status: 204 }]],
      'delivered',
    ],
    [
      'an event with source and code',
      notifyAbout({ source: { ref: 'x' } }, 'c0de'),
      [[SEND, { ...event, event_properties: { ref: 'x', code: 'c0de' } }, { status: 204 }]],
      'delivered',
    ],
    ['a removal', remove, [[DELETE, { status: 204 }]], { is: 'removed' }],
  ],
  [
    [
      { BREVO_LIST_IDS: '2,5' },
      ['lists', create, [[CREATE, made]], 'created'],
      [
        'a check',
        check,
        [
          ['GET /v3/contacts/attributes', { status: 200 }],
          ['GET /v3/contacts/lists/2', { status: 200 }],
          ['GET /v3/contacts/lists/5', { status: 200 }],
        ],
        null,
      ],
    ],
  ],
)
