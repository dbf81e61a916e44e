import type { Documented } from '../harness/wire.ts'

/**
 * Facts of the documents at https://docs.customer.io/integrations/api/track, /cdp and /app (2026-08), for the calls that we
 * make.
 */

const text = { type: 'string' }
const attribute = { type: ['string', 'integer', 'boolean'] }

const errors = {
  type: 'object',
  properties: { meta: { type: 'object', properties: { errors: { type: 'array', items: text } } } },
}

/** What the documents leave open is an empty object. */
const empty = { type: 'object', maxProperties: 0 }

/** What every message to the Pipelines API may have. */
const ofMessages = {
  userId: text,
  messageId: text,
  timestamp: { type: 'string', format: 'date-time' },
  integrations: { type: 'object' },
  context: { type: 'object' },
}

export const customerioCalls: Documented = {
  'PUT /api/v1/customers/{identifier}': {
    body: {
      type: 'object',
      properties: { email: text, created_at: { type: 'integer' } },
      additionalProperties: attribute,
    },
    answers: { 200: empty, 401: null },
  },
  'DELETE /api/v1/customers/{identifier}': { answers: { 200: { type: 'object' }, 401: null } },
  'POST /api/v1/customers/{identifier}/events': {
    body: {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', maxLength: 100 },
        id: { type: 'string', pattern: '^[0-7][0-9A-HJKMNP-TV-Z]{25}$' },
        timestamp: { type: 'integer' },
        // These would override who the mails of a campaign come from and go to.
        data: { type: 'object', properties: { recipient: false, from_address: false, reply_to: false } },
      },
      additionalProperties: false,
    },
    answers: { 200: empty, 400: errors, 401: null },
  },
  'POST /api/v1/segments/{segment_id}/add_customers': {
    body: {
      type: 'object',
      required: ['ids'],
      properties: { ids: { type: 'array', minItems: 1, maxItems: 1_000, items: text } },
      additionalProperties: false,
    },
    answers: { 200: empty, 400: errors, 401: null },
  },
  'POST /v1/identify': {
    body: {
      type: 'object',
      required: ['userId'],
      properties: {
        ...ofMessages,
        // Any shape would do; ours are plain.
        traits: { type: 'object', properties: { email: text }, additionalProperties: attribute },
      },
      additionalProperties: false,
    },
    answers: { 200: empty, 400: null, 401: null },
  },
  'POST /v1/track': {
    body: {
      type: 'object',
      // And a type, which the document calls required, and says that it is set by the path.
      required: ['userId', 'event'],
      properties: { ...ofMessages, event: text, properties: { type: 'object' } },
      additionalProperties: false,
    },
    answers: { 200: empty, 400: null, 401: null },
  },
  'GET /api/v1/accounts/region': {
    answers: {
      200: {
        type: 'object',
        required: ['url', 'region', 'environment_id'],
        properties: { url: text, region: { enum: ['us', 'eu'] }, environment_id: { type: 'integer' } },
      },
      401: null,
    },
  },
  'GET /v1/customers': {
    answers: {
      200: {
        type: 'object',
        properties: {
          results: {
            type: 'array',
            items: {
              type: 'object',
              required: ['cio_id', 'id', 'email'],
              properties: { cio_id: text, id: { type: ['string', 'null'] }, email: { type: ['string', 'null'] } },
            },
          },
        },
      },
      401: null,
      429: null,
    },
  },
  'GET /v1/segments/{segment_id}': {
    answers: {
      200: {
        type: 'object',
        required: ['segment'],
        properties: {
          segment: {
            type: 'object',
            required: ['id', 'type'],
            properties: { id: { type: 'integer' }, name: text, type: { enum: ['dynamic', 'manual'] } },
          },
        },
      },
      404: null,
      429: null,
    },
  },
  'GET /v1/customers/{customer_id}/attributes': {
    answers: {
      200: {
        type: 'object',
        properties: {
          customer: {
            type: 'object',
            properties: { attributes: { type: 'object', additionalProperties: { type: ['string', 'null'] } } },
          },
        },
      },
      400: null,
      404: null,
      429: null,
    },
  },
}
