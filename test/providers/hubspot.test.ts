import { check, create, createFor, createInDoubt, remove, vendorTable } from './table.ts'

const CONTACTS = '/crm/objects/2026-09/contacts'
const CREATE = `POST ${CONTACTS}`
const FIND = `GET ${CONTACTS}/ada@example.com?properties=email&idProperty=email`
const DELETE = `POST ${CONTACTS}/gdpr-delete`
const LIST = (id: number) => `PUT /crm/lists/2026-09/${id}/memberships/add`
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
const added = { status: 200, body: { recordIdsMissing: [], recordsIdsAdded: ['1001'] } }
const creation = [CREATE, made] as const
const conflict = [CREATE, known] as const
const list7 = [LIST(7), added] as const
const list8 = [LIST(8), added] as const
const byAddress = [FIND, found({ email })] as const

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
    [
      'one word is a first name',
      createFor({ name: 'Ada' }),
      [[CREATE, { properties: { email, firstname: 'Ada' } }, made]],
      'created',
    ],
    ['a known contact', create, [conflict], { is: 'existing', providerId: '1001' }],
    ['a known contact without an id', create, [[CREATE, error(409, 'CONFLICT', 'exists')]], 'existing'],
    ['in doubt, a known contact counts as created', createInDoubt, [conflict], { is: 'created', providerId: '1001' }],
    ['an invalid address', create, [[CREATE, notValid('email', 'INVALID_EMAIL')]], 'refused'],
    [
      'another refusal keeps the signup',
      create,
      [[CREATE, notValid('plan', 'PROPERTY_DOESNT_EXIST')]],
      /PROPERTY_DOESNT_EXIST/,
    ],
    ['a success without an id', create, [[CREATE, { status: 201, body: {} }]], 'in doubt'],
    ['a token without the scope', create, [[CREATE, error(403, 'MISSING_SCOPES', 'requires scopes')]], /scopes/],
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
    ['a removal that is refused', remove, [byAddress, [DELETE, error(403, 'MISSING_SCOPES', 'no')]], /403/],
    ['a check', check, [[`GET ${CONTACTS}?limit=1&properties=createdate`, { status: 200 }]], null],
  ],
  [
    [
      { HUBSPOT_LIST_IDS: '7, 8', PROVIDER_FIELDS: 'waitlist=early access,lifecyclestage=subscriber' },
      ['lists and fields', create, [creation, [LIST(7), ['1001'], added], [LIST(8), ['1001'], added]], 'created'],
      [
        'a list that is gone leaves doubt',
        create,
        [creation, [LIST(7), error(404, 'OBJECT_NOT_FOUND', '')]],
        'in doubt',
      ],
      ['in doubt, a known contact joins them', createInDoubt, [conflict, list7, list8], 'created'],
      [
        'a check of a list',
        check,
        [
          [`GET ${CONTACTS}?limit=1&properties=createdate`, { status: 200 }],
          ['GET /crm/lists/2026-09/7', error(404, 'x', 'no list')],
        ],
        /no list/,
      ],
    ],
  ],
)
