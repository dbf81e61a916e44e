import { check, create, createInDoubt, notify, notifyAbout, remove, vendorTable } from './table.ts'

const FIND = 'GET /v4/subscribers?email_address=ada@example.com&status=all'
const CREATE = 'POST /v4/subscribers'
const email_address = 'ada@example.com'
const subscriber = { id: 7, first_name: 'Ada', email_address, state: 'active' }
const absent = { status: 200, body: { subscribers: [] } }
const found = { status: 200, body: { subscribers: [{ ...subscriber, email_address: 'Ada@example.com' }] } }
const made = { status: 201, body: { subscriber } }
const added = { status: 201, body: { subscriber } }
const error = (status: number, ...errors: string[]) => ({ status, body: { errors } })
const created = { is: 'created', providerId: '7' }
const TAG = 'POST /v4/tags/1/subscribers'
const FORM = 'POST /v4/forms/4/subscribers/7'
const unknown = [FIND, absent] as const
const known = [FIND, found] as const
const creation = [CREATE, made] as const

vendorTable(
  'kit',
  url => ({ KIT_API_KEY: 'kit-key-of-the-test', KIT_TAG_ID: '1', KIT_BASE_URL: url }),
  [
    ['a new contact', create, [unknown, [CREATE, { email_address, first_name: 'Ada' }, made]], created],
    ['a known contact', create, [known], { is: 'existing', providerId: '7' }],
    ['in doubt, a known contact counts as created', createInDoubt, [known], created],
    [
      'in doubt, one who has unsubscribed is left as it is',
      createInDoubt,
      [[FIND, { status: 200, body: { subscribers: [{ ...subscriber, state: 'cancelled' }] } }]],
      { is: 'existing', providerId: '7', hasLeft: true },
    ],
    ['added by another tool after the look-up', create, [unknown, [CREATE, { ...made, status: 200 }]], 'existing'],
    [
      'another contact is none',
      create,
      [[FIND, { status: 200, body: { subscribers: [{ ...subscriber, email_address: 'x@example.com' }] } }], creation],
      'created',
    ],
    ['an invalid address', create, [unknown, [CREATE, error(422, 'Email address is invalid')]], 'refused'],
    ['another refusal keeps the signup', create, [unknown, [CREATE, error(422, 'Custom field is unknown')]], /422/],
    ['the tag that starts the automation', notify, [[TAG, { email_address }, added]], 'delivered'],
    [
      'the same by the id',
      notifyAbout({ providerId: '7' }),
      [[`${TAG}/7`, {}, { ...added, status: 200 }]],
      'delivered',
    ],
    ['a removal', remove, [known], { is: 'by hand', how: 'delete the subscriber in Kit, under Subscribers' }],
    ['a removal of nobody', remove, [unknown], { is: 'absent' }],
    [
      'a check',
      check,
      [
        ['GET /v4/account', { status: 200 }],
        [`${TAG.replace('POST', 'GET')}?per_page=1`, absent],
      ],
      null,
    ],
  ],
  [
    [
      { KIT_FORM_ID: '4', PROVIDER_FIELDS: 'plan=early' },
      [
        'a form and fields',
        create,
        [
          unknown,
          [CREATE, { email_address, first_name: 'Ada', state: 'inactive', fields: { plan: 'early' } }, made],
          [FORM, added],
        ],
        created,
      ],
      ['a known contact is left as it is', create, [known], 'existing'],
      ['a form that is gone leaves doubt', create, [unknown, creation, [FORM, error(404, 'Not Found')]], 'in doubt'],
      ['in doubt, a known contact is added to it', createInDoubt, [known, [FORM, added]], created],
    ],
  ],
)
