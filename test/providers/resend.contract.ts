import type { Documented } from '../harness/wire.ts'

const text = { type: 'string' }
const id = { type: 'string', pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }
/** Such as `2023-10-06 23:47:56.678+00`. */
const time = { type: 'string', pattern: '^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d+\\+00$' }

const subscription = { enum: ['opt_in', 'opt_out'] }

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

/** A page, whose items have these members. */
const list = (properties: Readonly<Record<string, object>>) =>
  answer('list', {
    has_more: { type: 'boolean' },
    data: { type: 'array', items: { type: 'object', additionalProperties: false, properties } },
  })

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
  // The official clients expect `contact`, where the document has `id`.
  'DELETE /contacts/{id}': {
    answers: { 200: answer('contact', { id, contact: id, deleted: { type: 'boolean' } }), 404: error },
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
        properties: { type: 'object', additionalProperties: { type: ['string', 'number', 'null'] } },
        segments: { type: 'array', items: { type: 'object', required: ['id'], properties: { id } } },
        topics: {
          type: 'array',
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['id', 'subscription'],
            properties: { id, subscription },
          },
        },
      },
    },
    answers: { 201: answer('contact', { id }), 404: error, 422: error },
  },
  'GET /contacts/{id}/segments': { answers: { 200: list({ id, name: text, created_at: time }) } },
  'POST /contacts/{id}/segments/{segment}': {
    answers: { 200: answer('contact_segment', { contact_id: id, segment_id: id }) },
  },
  'GET /segments/{id}': {
    answers: { 200: answer('segment', { id, name: text, created_at: time }), 404: error },
  },
  'GET /topics/{id}': {
    answers: {
      200: answer('topic', {
        id,
        name: text,
        description: text,
        default_subscription: subscription,
        visibility: { enum: ['public', 'private'] },
        created_at: time,
      }),
      404: error,
    },
  },
  'GET /contact-properties': {
    answers: {
      200: list({
        id,
        key: text,
        type: { enum: ['string', 'number'] },
        fallback_value: { type: ['string', 'number'] },
        created_at: time,
      }),
    },
  },
  'POST /events/send': {
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['event'],
      properties: { event: text, contact_id: id, email: text, payload: { type: 'object' } },
      oneOf: [{ required: ['contact_id'] }, { required: ['email'] }],
    },
    answers: { 202: answer('event', { event: text }) },
  },
}
