import type { Documented } from '../harness/wire.ts'

/** Facts of https://github.com/buttondown/openapi (MIT), document 1.0.0 of 2026-08, for the calls that we make. */

const text = { type: 'string' }

/** Unknown members are refused; the others that it knows are not sent by us. */
const subscriberInput = {
  type: 'object',
  additionalProperties: false,
  required: ['email_address'],
  properties: {
    email_address: {
      type: 'string',
      maxLength: 254,
      pattern: "^[a-zA-Z0-9.'_%+\\-!]+@[a-zA-Z0-9.\\-]+\\.[a-zA-Z]{2,}$",
    },
    metadata: { type: 'object' },
    tags: { type: 'array', items: text },
    type: { enum: ['regular', 'unactivated', null] },
    utm_campaign: { type: 'string', maxLength: 300 },
    utm_medium: { type: 'string', maxLength: 300 },
    utm_source: { type: 'string', maxLength: 300 },
    referrer_url: text,
  },
}

/** What an update may change; the rest of it is not sent by us. */
const subscriberUpdateInput = {
  type: 'object',
  additionalProperties: false,
  properties: { tags: { type: ['array', 'null'], items: text } },
}

const subscriber = {
  type: 'object',
  required: [
    'id',
    'creation_date',
    'email_address',
    'referral_code',
    'secondary_id',
    'source',
    'tags',
    'type',
    'utm_campaign',
    'utm_medium',
    'utm_source',
  ],
  properties: {
    id: text,
    creation_date: text,
    email_address: text,
    tags: { type: 'array' },
    metadata: { type: 'object' },
  },
}

const error = {
  type: 'object',
  required: ['detail'],
  properties: { code: text, detail: text, metadata: { type: 'object' } },
}

export const errorCodes = [
  'currency_mismatch',
  'email_already_exists',
  'email_blocked',
  'email_empty',
  'email_invalid',
  'invalid_input',
  'ip_address_spammy',
  'metadata_invalid',
  'newsletter_not_accepting_subscribers',
  'payment_failed',
  'promo_code_invalid',
  'rate_limited',
  'subscriber_already_exists',
  'subscriber_blocked',
  'subscriber_id_invalid',
  'subscriber_suppressed',
  'tag_invalid',
] as const

const creationError = { ...error, properties: { ...error.properties, code: { enum: errorCodes } } }

const validationError = {
  type: 'object',
  required: ['detail'],
  properties: { detail: { type: 'array', items: { type: 'object', required: ['type', 'loc', 'msg'] } } },
}

export const buttondownCalls: Documented = {
  'POST /v1/subscribers': {
    body: subscriberInput,
    answers: {
      201: subscriber,
      400: creationError,
      401: error,
      403: error,
      409: null,
      422: validationError,
      429: error,
    },
  },
  'POST /v1/subscribers/{id_or_email}/emails/{email_id}': {
    answers: { 200: { type: 'object' }, 400: error, 401: error, 403: error, 404: error, 409: null, 429: error },
  },
  'GET /v1/subscribers/{id_or_email}': {
    answers: { 200: subscriber, 401: error, 403: error, 404: error, 409: null, 429: error },
  },
  'DELETE /v1/subscribers/{id_or_email}': {
    answers: { 204: null, 401: error, 403: error, 404: error, 409: null, 429: error },
  },
  'PATCH /v1/subscribers/{id_or_email}': {
    body: subscriberUpdateInput,
    answers: {
      200: subscriber,
      400: error,
      401: error,
      403: error,
      404: error,
      409: null,
      422: validationError,
      429: error,
    },
  },
  'GET /v1/emails/{id}': {
    answers: {
      200: { type: 'object', required: ['id', 'body', 'status', 'subject'], properties: { id: text } },
      401: error,
      403: error,
      404: error,
      409: null,
      422: validationError,
      429: error,
    },
  },
  'GET /v1/tags': {
    answers: {
      200: { type: 'object', required: ['results', 'count'], properties: { results: { type: 'array' } } },
      401: error,
      403: error,
      409: null,
      422: validationError,
      429: error,
    },
  },
  'GET /v1/accounts/me': {
    answers: {
      200: { type: 'object', required: ['username', 'email_address'], properties: { username: text } },
      401: error,
      409: null,
      429: error,
    },
  },
}
