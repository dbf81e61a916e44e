import type { Documented } from '../harness/wire.ts'

/**
 * Facts of Mailchimp's own Swagger document (Marketing API 3.0.55). It allows further members nowhere that we send any, and
 * has one error for all statuses. Members that we do not use are left out of the answers.
 */

const problem = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'instance'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    instance: { type: 'string' },
  },
}
const problems = { 400: problem, 401: problem, 404: problem }

const text = { type: 'string' }
const interests = { type: 'object', additionalProperties: { type: 'boolean' } }
const statuses = ['subscribed', 'unsubscribed', 'cleaned', 'pending', 'transactional']

/** What both a creation and a change may have. */
const sent = {
  email_address: text,
  email_type: text,
  status: { enum: statuses },
  merge_fields: { type: 'object' },
  interests,
  language: text,
  vip: { type: 'boolean' },
  ip_signup: text,
  timestamp_signup: text,
  ip_opt: text,
  timestamp_opt: text,
}

const member = {
  type: 'object',
  properties: {
    id: text,
    email_address: text,
    contact_id: text,
    status: { enum: [...statuses, 'archived'] },
    merge_fields: { type: 'object' },
    interests,
    timestamp_signup: text,
    timestamp_opt: text,
    last_changed: text,
    language: text,
    tags: {
      type: 'array',
      items: { type: 'object', properties: { id: { type: 'integer' }, name: text }, additionalProperties: false },
    },
  },
}

const listed = (name: string) => ({
  type: 'object',
  properties: {
    [name]: { type: 'array', items: { type: 'object', properties: { id: text } } },
    total_items: { type: 'integer' },
  },
})

export const mailchimpContract: Documented = {
  'GET /3.0/lists/{list}': { answers: { 200: { type: 'object', properties: { id: text } }, ...problems } },
  'POST /3.0/lists/{list}/members': {
    body: {
      type: 'object',
      required: ['email_address', 'status'],
      additionalProperties: false,
      properties: { ...sent, tags: { type: 'array', items: text } },
    },
    answers: { 200: member, ...problems },
  },
  'GET /3.0/lists/{list}/members/{member}': { answers: { 200: member, ...problems } },
  'POST /3.0/lists/{list}/members/{member}/actions/delete-permanent': { answers: { 204: null, ...problems } },
  'PATCH /3.0/lists/{list}/members/{member}': {
    body: { type: 'object', additionalProperties: false, properties: sent },
    answers: { 200: member, ...problems },
  },
  'POST /3.0/lists/{list}/members/{member}/tags': {
    body: {
      type: 'object',
      required: ['tags'],
      additionalProperties: false,
      properties: {
        tags: {
          type: 'array',
          items: {
            type: 'object',
            required: ['name', 'status'],
            additionalProperties: false,
            properties: { name: text, status: { enum: ['inactive', 'active'] } },
          },
        },
        is_syncing: { type: 'boolean' },
      },
    },
    answers: { 204: null, ...problems },
  },
  'POST /3.0/lists/{list}/members/{member}/events': {
    body: {
      type: 'object',
      required: ['name'],
      additionalProperties: false,
      properties: {
        name: text,
        properties: { type: 'object', additionalProperties: text },
        is_syncing: { type: 'boolean' },
        occurred_at: text,
      },
    },
    answers: { 204: null, ...problems },
  },
  'GET /3.0/lists/{list}/interest-categories': { answers: { 200: listed('categories'), ...problems } },
  'GET /3.0/lists/{list}/interest-categories/{category}/interests': {
    answers: { 200: listed('interests'), ...problems },
  },
  'POST /3.0/customer-journeys/journeys/{journey}/steps/{step}/actions/trigger': {
    body: {
      type: 'object',
      required: ['email_address'],
      additionalProperties: false,
      properties: { email_address: text },
    },
    answers: { 204: null, ...problems },
  },
}
