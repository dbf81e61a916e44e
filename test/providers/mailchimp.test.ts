import { check, create, createFor, notify, notifyAbout, remove, vendorTable } from './table.ts'

const LIST = '/3.0/lists/a1b2c3d4e5'
const CREATE = `POST ${LIST}/members?skip_merge_validation=true`
const HASH = '3e3417d7ef77d5932a6734b916515ed5'
const SEND = `POST ${LIST}/members/${HASH}/events`
const DELETE = `POST ${LIST}/members/${HASH}/actions/delete-permanent`
const id = '00000000000000000000000000000001'
const member = {
  email_address: 'ada@example.com',
  status: 'subscribed',
  merge_fields: { FNAME: 'Ada', LNAME: 'King Lovelace' },
  timestamp_signup: '2026-03-04T05:06:07+00:00',
}
const problem = (status: number, title: string, detail = '') => ({
  status,
  body: { title, status, detail },
  headers: { 'content-type': 'application/problem+json; charset=utf-8' },
})
const made = { status: 200, body: { id: HASH, contact_id: id } }
const known = problem(400, 'Member Exists', 'ada@example.com is already a list member.')
const invalid = (detail: string) => problem(400, 'Invalid Resource', detail)
const atTen = createFor({ createdAt: new Date('2026-11-20T10:11:12.345Z') })

vendorTable(
  'mailchimp',
  url => ({
    MAILCHIMP_API_KEY: '0123456789abcdef0123456789abcdef-us21',
    MAILCHIMP_AUDIENCE_ID: 'a1b2c3d4e5',
    MAILCHIMP_BASE_URL: url,
  }),
  [
    ['a new contact', create, [[CREATE, member, made]], { is: 'created', providerId: id }],
    ['a time of signup', atTen, [[CREATE, made]], 'created'],
    ['a known contact', create, [[CREATE, known]], { is: 'existing' }],
    ['one who was deleted', create, [[CREATE, problem(400, 'Forgotten Email Not Subscribed')]], 'refused'],
    ['one who has unsubscribed', create, [[CREATE, problem(400, 'Member In Compliance State')]], 'refused'],
    [
      'an invalid address',
      create,
      [[CREATE, invalid('x looks fake or invalid, please enter a real email address.')]],
      'refused',
    ],
    [
      'another refusal keeps the signup',
      create,
      [[CREATE, invalid('Your merge fields were invalid.')]],
      /merge fields/,
    ],
    ['an event by the address', notify, [[SEND, { name: 'waitlist.joined' }, { status: 204 }]], 'delivered'],
    [
      'an event by the id',
      notifyAbout({ providerId: id }),
      [[SEND.replace(HASH, id), { name: 'waitlist.joined' }, { status: 204 }]],
      'delivered',
    ],
    [
      'an event by the id, with a code',
      notifyAbout({ providerId: id }, 'c0de'),
      [[SEND.replace(HASH, id), { name: 'waitlist.joined', properties: { code: 'c0de' } }, { status: 204 }]],
      'delivered',
    ],
    ['a removal', remove, [[DELETE, { status: 204 }]], { is: 'removed' }],
    ['a check', check, [[`GET ${LIST}?fields=id`, { status: 200 }]], null],
  ],
  [
    [{ MAILCHIMP_TAGS: 'Waitlist, Early access' }, ['tags', atTen, [[CREATE, made]], 'created']],
    [
      { MAILCHIMP_DOUBLE_OPT_IN: 'true' },
      ['double opt-in', create, [[CREATE, { ...member, status: 'pending' }, made]], 'created'],
    ],
  ],
)
