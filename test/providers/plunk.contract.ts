import type { Documented } from '../harness/wire.ts'

/**
 * Facts of https://docs.useplunk.com/openapi.json (1.0.0). The look-up is not in it: its facts, and that 402 and 422 exist
 * for contacts, are from the source (apps/api). Members that we do not use are left out where more are allowed.
 */

const contact = {
  type: 'object',
  required: ['id', 'email', 'subscribed', 'data', 'createdAt', 'updatedAt'],
  properties: {
    id: { type: 'string' },
    email: { type: 'string' },
    subscribed: { type: 'boolean' },
    data: { type: ['object', 'null'] },
    createdAt: { type: 'string' },
    updatedAt: { type: 'string' },
  },
}

const upserted = (isNew: boolean) => ({
  ...contact,
  required: [...contact.required, '_meta'],
  properties: {
    ...contact.properties,
    _meta: { type: 'object', required: ['isNew', 'isUpdate'], properties: { isNew: { const: isNew } } },
  },
})

const error = {
  type: 'object',
  required: ['success', 'error', 'timestamp'],
  properties: {
    success: { const: false },
    error: {
      type: 'object',
      required: ['code', 'message', 'statusCode', 'requestId'],
      properties: {
        errors: { type: 'array', items: { type: 'object', required: ['field', 'message', 'code'] } },
        details: { type: 'object' },
      },
    },
  },
}

const addresses = { type: 'array', minItems: 1, maxItems: 500, items: { type: 'string' } }

export const plunkContract: Documented = {
  'GET /contacts': {
    answers: {
      200: {
        type: 'object',
        required: ['data', 'hasMore', 'total'],
        properties: { data: { type: 'array', items: contact } },
      },
      401: error,
      402: error,
      403: error,
    },
  },
  'DELETE /contacts/{id}': { answers: { 204: null, 401: error, 402: error, 403: error, 404: error } },
  'POST /contacts/lookup': {
    body: { type: 'object', required: ['emails'], additionalProperties: false, properties: { emails: addresses } },
    answers: {
      200: {
        type: 'object',
        required: ['found', 'notFound'],
        properties: { found: { type: 'array' }, notFound: { type: 'array' } },
      },
      401: error,
      402: error,
      403: error,
    },
  },
  'POST /contacts': {
    body: {
      type: 'object',
      required: ['email'],
      additionalProperties: false,
      properties: { email: { type: 'string' }, subscribed: { type: 'boolean' }, data: { type: 'object' } },
    },
    answers: {
      200: upserted(false),
      201: upserted(true),
      400: { type: 'object', required: ['error'], properties: { error: { type: 'string' } } },
      401: error,
      402: error,
      422: error,
      500: error,
    },
  },
  'POST /v1/track': {
    body: {
      type: 'object',
      required: ['email', 'event'],
      additionalProperties: false,
      properties: {
        email: { type: 'string' },
        event: { type: 'string' },
        subscribed: { type: 'boolean' },
        data: { type: 'object' },
      },
    },
    answers: {
      200: {
        type: 'object',
        required: ['success', 'data'],
        properties: {
          success: { const: true },
          data: {
            type: 'object',
            required: ['contact', 'event', 'timestamp'],
            properties: { contact: { type: 'string' }, event: { type: 'string' } },
          },
        },
      },
      401: error,
      402: error,
      409: error,
      422: error,
      500: error,
    },
  },
}
