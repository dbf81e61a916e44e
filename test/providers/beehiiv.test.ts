import { check, create, createInDoubt, notify, notifyAbout, remove, vendorTable } from './table.ts'

const BASE = '/publications/pub_1'
const FIND = `GET ${BASE}/subscriptions/by_email/ada@example.com`
const CREATE = `POST ${BASE}/subscriptions`
const TAGS = `POST ${BASE}/subscriptions/sub_1/tags`
const START = `POST ${BASE}/automations/aut_1/journeys`
const email = 'ada@example.com'
const error = (status: number, message = '') => ({ status, body: { status, errors: [{ message }] } })
const absent = error(404, 'Not found')
const found = { status: 200, body: { data: { id: 'sub_1', email, status: 'active', created: 1_600_000_000 } } }
const created = { is: 'created', providerId: 'sub_1' }
const started = { status: 200, body: { data: { id: 'aj_1' } } }
const unknown = [FIND, absent] as const
const known = [FIND, found] as const
const creation = [CREATE, found] as const

vendorTable(
  'beehiiv',
  url => ({
    BEEHIIV_API_KEY: 'beehiiv-key-of-the-test',
    BEEHIIV_PUBLICATION_ID: 'pub_1',
    BEEHIIV_AUTOMATION_ID: 'aut_1',
    BEEHIIV_BASE_URL: url,
  }),
  [
    ['a new contact', create, [unknown, [CREATE, { email }, { ...found, status: 201 }]], created],
    ['a known contact', create, [known], { is: 'existing', providerId: 'sub_1' }],
    ['a refusal keeps the signup', create, [unknown, [CREATE, error(400, 'no')]], /400/],
    ['the automation', notify, [[START, { email }, started]], 'delivered'],
    [
      'the same by the id',
      notifyAbout({ providerId: 'sub_1' }),
      [[START, { subscription_id: 'sub_1' }, started]],
      'delivered',
    ],
    ['a removal', remove, [known, [`DELETE ${BASE}/subscriptions/sub_1`, { status: 204 }]], { is: 'removed' }],
    ['a removal of nobody', remove, [unknown], { is: 'absent' }],
    [
      'a check',
      check,
      [
        [`GET ${BASE}`, { status: 200 }],
        [`GET ${BASE}/automations/aut_1`, { status: 200 }],
      ],
      null,
    ],
  ],
  [
    [
      { BEEHIIV_TAGS: 'Waitlist', BEEHIIV_SEND_WELCOME_EMAIL: 'true' },
      [
        'tags and the welcome email',
        create,
        [
          unknown,
          [CREATE, { email, send_welcome_email: true }, found],
          [TAGS, { tags: ['Waitlist'] }, { status: 200 }],
        ],
        created,
      ],
      ['tags that fail leave doubt', create, [unknown, creation, [TAGS, error(400)]], 'in doubt'],
      ['in doubt, a known contact gets them', createInDoubt, [known, [TAGS, { status: 200 }]], created],
    ],
  ],
)
