import { check, create, createFor, notify, notifyAbout, remove, vendorTable } from './table.ts'

const CREATE = 'POST /v1/subscribers'
const SEND = 'POST /v1/subscribers/ada@example.com/emails/em_1'
const DELETE = 'DELETE /v1/subscribers/ada@example.com'
const email_address = 'ada@example.com'
const metadata = { name: 'Ada King Lovelace' }
const made = { status: 201, body: { id: 'sub_1', email_address } }
const error = (code: string, detail = '') => ({ status: 400, body: { code, detail } })
const invalid = (...loc: string[]) => ({ status: 422, body: { detail: [{ type: 'value_error', loc, msg: 'wrong' }] } })

vendorTable(
  'buttondown',
  url => ({ BUTTONDOWN_API_KEY: 'buttondown-key-of-the-test', BUTTONDOWN_EMAIL_ID: 'em_1', BUTTONDOWN_BASE_URL: url }),
  [
    ['a new contact', create, [[CREATE, { email_address, metadata }, made]], { is: 'created', providerId: 'sub_1' }],
    [
      'a source',
      createFor({ source: { ref: 'x' } }),
      [[CREATE, { email_address, metadata: { ...metadata, ref: 'x' } }, made]],
      'created',
    ],
    ['a known contact', create, [[CREATE, error('email_already_exists')]], { is: 'existing' }],
    ['a known contact by the other code', create, [[CREATE, error('subscriber_already_exists')]], 'existing'],
    ['an invalid address', create, [[CREATE, error('email_invalid')]], 'refused'],
    ['a suppressed address', create, [[CREATE, error('subscriber_suppressed')]], 'refused'],
    ['an address of a shape that it does not take', create, [[CREATE, invalid('body', 'email_address')]], 'refused'],
    ['another refusal keeps the signup', create, [[CREATE, invalid('body', 'tags')]], /422/],
    ['the firewall keeps the signup', create, [[CREATE, error('subscriber_blocked')]], /subscriber_blocked/],
    ['a conflict that nobody explains', create, [[CREATE, { status: 409 }]], 'in doubt'],
    ['a mail', notify, [[SEND, { status: 200, body: {} }]], 'delivered'],
    [
      'a mail by the id',
      notifyAbout({ providerId: 'sub_1' }),
      [[SEND.replace(email_address, 'sub_1'), { status: 200 }]],
      'delivered',
    ],
    ['a removal', remove, [[DELETE, { status: 204 }]], { is: 'removed' }],
    [
      'a check',
      check,
      [
        ['GET /v1/accounts/me', { status: 200 }],
        ['GET /v1/emails/em_1', { status: 404 }],
      ],
      /404/,
    ],
  ],
  [
    [
      { BUTTONDOWN_TAGS: 'Waitlist, Early access', BUTTONDOWN_DOUBLE_OPT_IN: 'false', BUTTONDOWN_EMAIL_ID: '' },
      [
        'tags, without double opt-in',
        create,
        [[CREATE, { email_address, type: 'regular', tags: ['Waitlist', 'Early access'], metadata }, made]],
        'created',
      ],
      [
        'a check of tags',
        check,
        [
          ['GET /v1/accounts/me', { status: 200 }],
          ['GET /v1/tags?page_size=1', { status: 200 }],
        ],
        null,
      ],
    ],
  ],
)
