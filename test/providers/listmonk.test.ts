import { ada, check, create, createFor, notify, notifyAbout, remove, vendorTable } from './table.ts'

const CREATE = 'POST /api/subscribers'
const FIND = 'GET /api/subscribers?search=^ada@example\\.com$&per_page=1'
const SEND = 'POST /api/tx'
const email = 'ada@example.com'
const subscriber = { email, name: 'Ada King Lovelace', status: 'enabled', lists: [1, 2], attribs: { waitlist: ada.id } }
const ok = (data: unknown = true) => ({ status: 200, body: { data } })
const message = (status: number, text: string) => ({ status, body: { message: text } })
const made = ok({ id: 7, uuid: 'u', email, lists: [{ id: 1 }, { id: 2 }] })
const known = message(409, 'E-Mail existiert bereits.')
const rows = (...emails: string[]) => ok({ results: emails.map(each => ({ id: 7, email: each })) })

vendorTable(
  'listmonk',
  url => ({
    LISTMONK_BASE_URL: url,
    LISTMONK_USER: 'waitlist',
    LISTMONK_TOKEN: 'token-of-the-test',
    LISTMONK_LIST_IDS: '1,2',
    LISTMONK_TEMPLATE_ID: '5',
  }),
  [
    ['a new contact', create, [[CREATE, subscriber, made]], { is: 'created', providerId: '7' }],
    [
      'a source',
      createFor({ source: { ref: 'x' } }),
      [[CREATE, { ...subscriber, attribs: { ref: 'x', waitlist: ada.id } }, made]],
      'created',
    ],
    ['a known contact, in any language', create, [[CREATE, known]], { is: 'existing' }],
    ['an invalid address', create, [[CREATE, message(400, 'Invalid email')]], 'refused'],
    ['a blocked domain', create, [[CREATE, message(400, 'The e-mail domain is blocklisted.')]], 'refused'],
    ['another refusal keeps the signup', create, [[CREATE, message(400, 'Ungültige E-Mail.')]], /400/],
    ['a mail by the address', notify, [[SEND, { subscriber_email: email, template_id: 5 }, ok()]], 'delivered'],
    [
      'a mail by the id',
      notifyAbout({ providerId: '7' }),
      [[SEND, { subscriber_id: 7, template_id: 5 }, ok()]],
      'delivered',
    ],
    [
      'a removal',
      remove,
      [
        [FIND, rows(email)],
        ['DELETE /api/subscribers/7', ok()],
      ],
      { is: 'removed' },
    ],
    ['a removal of nobody', remove, [[FIND, rows()]], { is: 'absent' }],
    ['a removal of somebody whose name is an address', remove, [[FIND, rows('other@example.com')]], 'by hand'],
    [
      'a check',
      check,
      [
        ['GET /api/subscribers?per_page=1', ok()],
        ['GET /api/lists/1', ok()],
        ['GET /api/lists/2', message(400, 'no list')],
      ],
      /no list/,
    ],
  ],
  [
    [
      { PROVIDER_FIELDS: 'plan=early' },
      ['fields', create, [[CREATE, { ...subscriber, attribs: { plan: 'early', waitlist: ada.id } }, made]], 'created'],
    ],
  ],
)
