import type { Documented } from '../harness/wire.ts'

/**
 * Facts of the OpenAPI document 1.0.0 of https://developers.beehiiv.com, as it was in 2026-08, for the calls that we make.
 * Its servers answer a creation with 201, where the document says 200.
 */

const text = { type: 'string' }
const seconds = { type: 'integer' }

const error = {
  type: 'object',
  required: ['status', 'statusText', 'errors'],
  properties: {
    status: { type: 'integer' },
    statusText: text,
    errors: {
      type: 'array',
      items: { type: 'object', required: ['message', 'code'], properties: { message: text, code: text } },
    },
  },
}
const errors = { 400: error, 401: error, 404: error, 429: error, 500: error }

const data = (schema: object) => ({ type: 'object', required: ['data'], properties: { data: schema } })

const subscription = data({
  type: 'object',
  required: [
    'id',
    'email',
    'status',
    'created',
    'subscription_tier',
    'subscription_premium_tier_names',
    'utm_source',
    'utm_medium',
    'utm_channel',
    'utm_campaign',
    'utm_term',
    'utm_content',
    'referring_site',
    'referral_code',
  ],
  properties: {
    id: text,
    email: text,
    status: { enum: ['validating', 'invalid', 'pending', 'active', 'inactive', 'needs_attention', 'paused'] },
    created: seconds,
    utm_source: text,
    utm_medium: text,
    utm_campaign: text,
    tags: { type: 'array', items: text },
  },
})

/** Those that we know; the document has more. */
const subscriptionRequest = {
  type: 'object',
  additionalProperties: false,
  required: ['email'],
  properties: {
    email: text,
    send_welcome_email: { type: 'boolean' },
    utm_source: text,
    utm_medium: text,
    utm_campaign: text,
    utm_term: text,
    utm_content: text,
    referring_site: text,
    // That of another subscriber.
    referral_code: text,
    double_opt_override: { enum: ['on', 'off', 'not_set'] },
    custom_fields: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        properties: { name: text, value: { type: ['string', 'number', 'boolean', 'array'] } },
      },
    },
  },
}

export const beehiivCalls: Documented = {
  'GET /publications/{publication}': {
    answers: {
      200: data({
        type: 'object',
        required: ['id', 'name', 'organization_name', 'referral_program_enabled', 'created'],
        properties: { id: text, created: { type: 'number' } },
      }),
      ...errors,
    },
  },
  'GET /publications/{publication}/subscriptions/by_email/{email}': { answers: { 200: subscription, ...errors } },
  'DELETE /publications/{publication}/subscriptions/{subscription}': { answers: { 204: null, ...errors } },
  'POST /publications/{publication}/subscriptions': {
    body: subscriptionRequest,
    answers: { 200: subscription, 201: subscription, ...errors },
  },
  'POST /publications/{publication}/subscriptions/{subscription}/tags': {
    body: {
      type: 'object',
      additionalProperties: false,
      properties: { tags: { type: 'array', items: text } },
    },
    answers: { 200: subscription, ...errors },
  },
  'GET /publications/{publication}/automations/{automation}': {
    answers: {
      200: data({
        type: 'object',
        required: ['id', 'status', 'name', 'trigger_events'],
        properties: {
          id: text,
          status: { enum: ['running', 'finishing', 'inactive', 'live', 'draft'] },
          name: text,
          trigger_events: { type: 'array', items: text },
        },
      }),
      ...errors,
    },
  },
  'POST /publications/{publication}/automations/{automation}/journeys': {
    body: {
      type: 'object',
      additionalProperties: false,
      properties: { email: text, subscription_id: text },
    },
    answers: {
      200: data({
        type: 'object',
        required: ['id', 'automation_id', 'status'],
        properties: {
          id: text,
          automation_id: text,
          subscription_id: text,
          email: text,
          status: { enum: ['in_progress', 'completed', 'exited_early', 'manually_removed'] },
          started_at: seconds,
          completed_at: seconds,
        },
      }),
      ...errors,
    },
  },
  'GET /publications/{publication}/custom_fields': {
    answers: {
      200: data({
        type: 'array',
        items: {
          type: 'object',
          properties: {
            id: text,
            kind: { enum: ['string', 'integer', 'boolean', 'date', 'datetime', 'list', 'double'] },
            display: text,
            created: seconds,
          },
        },
      }),
      ...errors,
    },
  },
}
