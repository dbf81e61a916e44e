import type { Documented } from '../harness/wire.ts'

/**
 * Facts of Ghost 6.65.0 (MIT) for the calls that we make: what its schemas of the Admin API take, and the shape of what a
 * server of that version answered to them.
 */

const text = { type: 'string' }
const textOrNull = { type: ['string', 'null'] }

/** By name, id or slug; a text is a name. */
const named = {
  type: 'array',
  items: {
    anyOf: [
      {
        type: 'object',
        properties: { id: { ...text, maxLength: 24 }, name: { ...text, maxLength: 191 } },
        anyOf: [{ required: ['id'] }, { required: ['name'] }, { required: ['slug'] }],
      },
      { ...text, maxLength: 191 },
    ],
  },
}

const sent = {
  name: { ...text, maxLength: 191, pattern: '^([^,]|$)' },
  // What it does not take is answered with a 422, and tried by the tests.
  email: text,
  note: { ...text, maxLength: 2_000 },
  labels: named,
  newsletters: named,
}

/** What it does not know is dropped there, and is a mistake here. */
const one = (properties: object, required: readonly string[]) => ({
  type: 'object',
  additionalProperties: false,
  required: ['members'],
  properties: {
    members: {
      type: 'array',
      minItems: 1,
      maxItems: 1,
      items: { type: 'object', additionalProperties: false, required, properties },
    },
  },
})

const member = {
  type: 'object',
  required: ['id', 'uuid', 'email', 'name', 'note', 'subscribed', 'created_at', 'labels', 'newsletters', 'status'],
  properties: {
    id: { ...text, pattern: '^[0-9a-f]{24}$' },
    email: text,
    name: textOrNull,
    note: textOrNull,
    subscribed: { type: 'boolean' },
    created_at: text,
    labels: { type: 'array', items: { type: 'object', required: ['id', 'name', 'slug'] } },
    newsletters: { type: 'array', items: { type: 'object', required: ['id', 'name', 'status'] } },
  },
}

const list = (name: string, items: object) => ({
  type: 'object',
  required: [name, 'meta'],
  properties: { [name]: { type: 'array', items } },
})
const members = { type: 'object', required: ['members'], properties: { members: { type: 'array', items: member } } }

const error = {
  type: 'object',
  required: ['errors'],
  properties: {
    errors: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['message', 'context', 'type', 'details', 'property', 'help', 'code', 'id', 'ghostErrorCode'],
        properties: { message: text, context: textOrNull, type: text, property: textOrNull, code: textOrNull },
      },
    },
  },
}
const errors = { 400: error, 401: error, 403: error, 404: error, 422: error }

export const ghostCalls: Documented = {
  'GET /ghost/api/admin/members/': {
    answers: { 200: list('members', { type: 'object', required: ['id'] }), ...errors },
  },
  'POST /ghost/api/admin/members/': { body: one(sent, ['email']), answers: { 201: members, ...errors, 500: error } },
  'PUT /ghost/api/admin/members/{id}/': { body: one(sent, []), answers: { 200: members, ...errors } },
  'DELETE /ghost/api/admin/members/{id}/': { answers: { 204: null, ...errors } },
  'GET /ghost/api/admin/newsletters/': {
    answers: { 200: list('newsletters', { type: 'object', required: ['id'] }), ...errors },
  },
}

/** The answers that tell one mistake from another, as that server gave them. */
export const said = {
  known: {
    message: 'Validation error, cannot save member.',
    context: 'Member already exists. Attempting to add member with existing email address',
    type: 'ValidationError',
    property: 'email',
  },
  invalid: {
    message: 'Validation error, cannot save member.',
    context: 'Invalid Email',
    type: 'ValidationError',
    property: 'email',
  },
  tooLong: {
    message: 'Validation error, cannot save member.',
    context: 'Validation failed for email.',
    type: 'ValidationError',
    property: 'email',
  },
  comma: {
    message: 'Validation error, cannot save member.',
    context: 'Validation failed for name.',
    type: 'ValidationError',
    property: 'name',
  },
  noNewsletter: {
    message: 'Validation error, cannot save member.',
    context: 'Value in [newsletters.name] cannot be blank. newsletters.name',
    type: 'ValidationError',
  },
  noMail: {
    message: 'Error sending email!',
    context: 'Failed to send email. Reason: connect ECONNREFUSED 127.0.0.1:25.',
    type: 'EmailError',
    code: 'ESOCKET',
  },
  signature: { message: 'Invalid token: invalid signature', type: 'UnauthorizedError', code: 'INVALID_JWT' },
  expired: { message: 'Invalid token: jwt expired', type: 'UnauthorizedError', code: 'INVALID_JWT' },
  tooOld: { message: 'Invalid token: maxAge exceeded', type: 'UnauthorizedError', code: 'INVALID_JWT' },
  audience: {
    message: 'Invalid token: jwt audience invalid. expected: //?admin/?$/',
    type: 'UnauthorizedError',
    code: 'INVALID_JWT',
  },
  unknownKey: { message: 'Unknown Admin API Key', type: 'UnauthorizedError', code: 'UNKNOWN_ADMIN_API_KEY' },
  noHeader: {
    message: 'Authorization header format is "Authorization: Ghost [token]"',
    type: 'UnauthorizedError',
    code: 'INVALID_AUTH_HEADER',
  },
  filter: {
    message: 'Request not understood error, cannot list members.',
    context: 'Error parsing filter',
    type: 'BadRequestError',
  },
  notFound: {
    message: 'Resource not found error, cannot edit member.',
    context: 'Could not find Member 000000000000000000000000',
    type: 'NotFoundError',
  },
} as const
