import type { Documented } from '../harness/wire.ts'

const text = { type: 'string' }
const id = { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }
/** Such as `2023-10-06 23:47:56.678+00`. */
const time = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d+\\+00$' }

const answer = (object: string, properties: Readonly<Record<string, object>>) => ({
  type: 'object',
  additionalProperties: false,
  required: ['object'],
  properties: { object: { const: object }, ...properties },
})

/** The error codes of https://resend.com/docs/api-reference/errors: the document has no error answers. */
const error = {
  type: 'object',
  required: ['statusCode', 'name', 'message'],
  properties: { statusCode: { type: 'integer' }, name: { enum: ['not_found', 'validation_error'] }, message: text },
}

/**
 * Facts of https://github.com/resend/resend-openapi (MIT), 1.5.0, for the calls that we make. It says that segments are
 * texts, where the vendor's own clients send objects, as we do.
 */
export const resendCalls: Documented = {
  'GET /contacts': {
    answers: { 200: answer('list', { data: { type: 'array' }, has_more: { type: 'boolean' } }) },
  },
  'GET /contacts/{id}': {
    answers: {
      200: answer('contact', {
        id,
        email: text,
        first_name: { type: ['string', 'null'] },
        last_name: { type: ['string', 'null'] },
        created_at: time,
        unsubscribed: { type: 'boolean' },
        properties: { type: 'object' },
      }),
      404: error,
    },
  },
  'POST /contacts': {
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['email'],
      properties: {
        email: text,
        first_name: text,
        last_name: text,
        segments: { type: 'array', items: { type: 'object', required: ['id'], properties: { id } } },
      },
    },
    answers: { 201: answer('contact', { id }), 422: error },
  },
  'GET /segments/{id}': {
    answers: { 200: answer('segment', { id, name: text, created_at: time }) },
  },
  'POST /events/send': {
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['event'],
      properties: { event: text, contact_id: id, email: text },
      oneOf: [{ required: ['contact_id'] }, { required: ['email'] }],
    },
    answers: { 202: answer('event', { event: text }) },
  },
}
