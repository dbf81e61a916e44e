import { check, create, remove, vendorTable } from './table.ts'

const CONTACTS = '/crm/objects/2026-09/contacts'
const CREATE = `POST ${CONTACTS}`
const FIND = `GET ${CONTACTS}/ada@example.com?properties=email&idProperty=email`
const DELETE = `POST ${CONTACTS}/gdpr-delete`
const email = 'ada@example.com'
const names = { firstname: 'Ada', lastname: 'King Lovelace' }
const error = (status: number, category: string, message: string) => ({
  status,
  body: { status: 'error', category, message },
})
const made = { status: 201, body: { id: '1001', properties: { email } } }
const found = (properties: object) => ({ status: 200, body: { id: '1001', properties } })
const known = error(409, 'CONFLICT', 'Contact already exists. Existing ID: 1001')
const wrong = (name: string, error: string) => JSON.stringify([{ isValid: false, name, error }])
const notValid = (name: string, code: string) =>
  error(400, 'VALIDATION_ERROR', `Property values were not valid: ${wrong(name, code)}`)

vendorTable(
  'hubspot',
  url => ({ HUBSPOT_TOKEN: 'hubspot-token-of-the-test', HUBSPOT_BASE_URL: url }),
  [
    [
      'a new contact',
      create,
      [[CREATE, { properties: { email, ...names } }, made]],
      { is: 'created', providerId: '1001' },
    ],
    ['a known contact', create, [[CREATE, known]], { is: 'existing' }],
    ['an invalid address', create, [[CREATE, notValid('email', 'INVALID_EMAIL')]], 'refused'],
    [
      'another refusal keeps the signup',
      create,
      [[CREATE, notValid('plan', 'PROPERTY_DOESNT_EXIST')]],
      /PROPERTY_DOESNT_EXIST/,
    ],
    [
      'a removal',
      remove,
      [
        [FIND, found({ email: 'Ada@example.com' })],
        [DELETE, { objectId: '1001' }, { status: 204 }],
      ],
      { is: 'removed' },
    ],
    ['a removal of nobody', remove, [[FIND, error(404, 'OBJECT_NOT_FOUND', '')]], { is: 'absent' }],
    ['a removal of a secondary address', remove, [[FIND, found({ email: 'other@example.com' })]], 'by hand'],
    ['a check', check, [[`GET ${CONTACTS}?limit=1&properties=createdate`, { status: 200 }]], null],
  ],
  [
    [
      { PROVIDER_FIELDS: 'waitlist=early access,lifecyclestage=subscriber' },
      ['fields', create, [[CREATE, made]], 'created'],
    ],
  ],
)
