import type { Documented } from '../harness/wire.ts'

/**
 * Facts of listmonk's docs/swagger/collections.yaml (1.0.0), which has successes alone. The parameter `search`, the
 * profile, `optin` and the times of a subscription, and that errors are `{message}` with 400, 403, 409 and 500, are from the
 * source and from 6.2.0 itself (listmonk.real.test.ts).
 */

const whole = { type: 'integer' }
const text = { type: 'string' }
const texts = { type: 'array', items: text }
const wholes = { type: 'array', items: whole }
const message = { type: 'object', required: ['message'], properties: { message: text } }
const done = { type: 'object', required: ['data'], properties: { data: { const: true } } }

const subscriber = {
  type: 'object',
  properties: {
    id: whole,
    uuid: text,
    email: text,
    name: text,
    status: text,
    created_at: text,
    updated_at: text,
    attribs: { type: 'object' },
    lists: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'optin', 'subscription_status', 'subscription_created_at'],
        properties: {
          id: whole,
          optin: { enum: ['single', 'double'] },
          subscription_status: { enum: ['unconfirmed', 'confirmed', 'unsubscribed'] },
          subscription_created_at: text,
        },
      },
    },
  },
  required: ['id', 'uuid', 'email', 'name', 'status', 'attribs', 'lists'],
  additionalProperties: false,
}

const refusals = { 400: message, 403: message }

export const listmonkContract: Documented = {
  'POST /api/subscribers': {
    body: {
      type: 'object',
      required: ['email', 'name', 'status', 'lists'],
      additionalProperties: false,
      properties: {
        email: text,
        name: text,
        status: { enum: ['enabled', 'disabled', 'blocklisted'] },
        lists: wholes,
        attribs: { type: 'object' },
        preconfirm_subscriptions: { type: 'boolean' },
      },
    },
    answers: { 200: { type: 'object', properties: { data: subscriber } }, 409: message, ...refusals },
  },
  'GET /api/subscribers': {
    answers: {
      200: {
        type: 'object',
        properties: {
          data: {
            type: 'object',
            required: ['results', 'total', 'page', 'per_page'],
            properties: { results: { type: 'array', items: subscriber } },
          },
        },
      },
      ...refusals,
    },
  },
  'PUT /api/subscribers/lists': {
    body: {
      type: 'object',
      required: ['ids', 'action', 'target_list_ids', 'status'],
      additionalProperties: false,
      properties: {
        ids: wholes,
        target_list_ids: wholes,
        action: { enum: ['add', 'remove', 'unsubscribe'] },
        status: { enum: ['confirmed', 'unconfirmed', 'unsubscribed'] },
      },
    },
    answers: { 200: done, 500: message, ...refusals },
  },
  'DELETE /api/subscribers/{id}': { answers: { 200: done, ...refusals } },
  'POST /api/subscribers/{id}/optin': { answers: { 200: done, ...refusals } },
  'GET /api/profile': {
    answers: {
      200: {
        type: 'object',
        required: ['data'],
        properties: {
          data: {
            type: 'object',
            required: ['user_role', 'list_role'],
            properties: {
              user_role: {
                type: 'object',
                required: ['id', 'permissions'],
                properties: { id: whole, permissions: texts },
              },
              list_role: {
                type: ['object', 'null'],
                properties: {
                  lists: {
                    type: 'array',
                    items: { required: ['id', 'permissions'], properties: { id: whole, permissions: texts } },
                  },
                },
              },
            },
          },
        },
      },
      ...refusals,
    },
  },
  'GET /api/config': {
    answers: {
      200: {
        type: 'object',
        required: ['data'],
        properties: { data: { type: 'object', required: ['lang'], properties: { lang: text } } },
      },
      ...refusals,
    },
  },
  'GET /api/lang/{lang}': {
    answers: {
      200: {
        type: 'object',
        required: ['data'],
        properties: { data: { type: 'object', additionalProperties: text } },
      },
      ...refusals,
    },
  },
  'GET /api/lists/{id}': {
    answers: {
      200: {
        type: 'object',
        required: ['data'],
        properties: {
          data: {
            type: 'object',
            required: ['id', 'name', 'optin'],
            properties: { id: whole, name: text, optin: text },
          },
        },
      },
      ...refusals,
    },
  },
  'POST /api/tx': {
    body: {
      type: 'object',
      required: ['template_id'],
      oneOf: [{ required: ['subscriber_email'] }, { required: ['subscriber_id'] }],
      additionalProperties: false,
      properties: {
        subscriber_email: text,
        subscriber_id: whole,
        template_id: whole,
        data: { type: 'object' },
        content_type: text,
      },
    },
    answers: { 200: done, ...refusals },
  },
}
