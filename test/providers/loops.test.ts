import {
  check,
  create,
  createFor,
  createInDoubt,
  notify,
  notifyAbout,
  remove,
  removeFor,
  vendorTable,
} from './table.ts'

const CREATE = 'POST /api/v1/contacts/create'
const SEND = 'POST /api/v1/events/send'
const DELETE = 'POST /api/v1/contacts/delete'
const email = 'ada@example.com'
const names = { firstName: 'Ada', lastName: 'King Lovelace' }
const ok = (more = {}) => ({ status: 200, body: { success: true, ...more } })
const failed = (status: number, message = '') => ({ status, body: { success: false, message } })
const made = ok({ id: 'cll1' })
const event = { email, eventName: 'waitlist.joined' }

vendorTable(
  'loops',
  url => ({ LOOPS_API_KEY: 'loops-key-of-the-test', LOOPS_BASE_URL: `${url}/api` }),
  [
    [
      'a new contact',
      create,
      [[CREATE, { email, ...names, source: 'waitlist' }, made]],
      { is: 'created', providerId: 'cll1' },
    ],
    [
      'one word is a first name',
      createFor({ name: 'Ada' }),
      [[CREATE, { email, firstName: 'Ada', source: 'waitlist' }, made]],
      'created',
    ],
    [
      'an address in lower case',
      createFor({ email: 'ADA@Example.com' }),
      [[CREATE, { email, ...names, source: 'waitlist' }, made]],
      'created',
    ],
    ['a known contact', create, [[CREATE, failed(409, 'Email or userId is already on list.')]], { is: 'existing' }],
    ['in doubt, a known contact counts as created', createInDoubt, [[CREATE, failed(409)]], 'created'],
    ['an invalid address', create, [[CREATE, failed(400, 'Invalid email address.')]], 'refused'],
    ['another refusal keeps the signup', create, [[CREATE, failed(400, 'Unknown property')]], /400 .*Unknown property/],
    ['a success without an id', create, [[CREATE, ok()]], 'in doubt'],
    ['a wrong key', create, [[CREATE, { status: 401, body: { error: 'Invalid API key' } }]], /401/],
    ['an event', notify, [[SEND, event, ok()]], 'delivered'],
    [
      'an event with source and code',
      notifyAbout({ source: { ref: 'x' } }, 'c0de'),
      [[SEND, { ...event, eventProperties: { ref: 'x', code: 'c0de' } }, ok()]],
      'delivered',
    ],
    ['a repeated event is recognised', notify, [[SEND, failed(409, 'Idempotency key was used.')]], 'delivered'],
    ['a refused event', notify, [[SEND, failed(400, 'eventName is required')]], 'refused'],
    ['a removal', remove, [[DELETE, { email }, ok()]], { is: 'removed' }],
    ['a removal of nobody', remove, [[DELETE, failed(404, 'Contact not found.')]], { is: 'absent' }],
    ['a removal of what is no address asks nobody', removeFor('..'), [], { is: 'absent' }],
    ['a check', check, [['GET /api/v1/api-key', ok({ teamName: 'Example' })]], null],
    ['a check of a wrong key', check, [['GET /api/v1/api-key', failed(401, 'Invalid API key')]], /Invalid API key/],
  ],
  [
    [
      { LOOPS_MAILING_LISTS: 'list-1,list-2', PROVIDER_FIELDS: 'planName=free, userGroup=Early adopters' },
      ['lists and fields', create, [[CREATE, made]], 'created'],
    ],
  ],
)
