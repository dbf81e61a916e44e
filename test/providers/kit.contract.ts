import type { Documented } from '../harness/wire.ts'

const text = { type: 'string' }

const subscriberWith = (...more: readonly string[]) => ({
  type: 'object',
  required: ['id', 'first_name', 'email_address', 'state', 'created_at', 'fields', ...more],
  properties: {
    id: { type: 'integer' },
    first_name: { type: ['string', 'null'] },
    email_address: text,
    state: { enum: ['active', 'cancelled', 'bounced', 'complained', 'inactive'] },
    created_at: text,
    fields: { type: 'object' },
  },
})

const answer = (...more: readonly string[]) => ({
  type: 'object',
  required: ['subscriber'],
  properties: { subscriber: subscriberWith(...more) },
})
const errors = { type: 'object', required: ['errors'], properties: { errors: { type: 'array', items: text } } }

const nothing = { type: 'object', additionalProperties: false }
const address = {
  type: 'object',
  additionalProperties: false,
  required: ['email_address'],
  properties: { email_address: text },
}
/** The page that a subscriber comes from, whose query has the campaign. */
const referrer = { type: ['string', 'null'] }
const tagged = { 200: answer('tagged_at'), 201: answer('tagged_at'), 401: errors, 404: errors }
const added = { 200: answer('added_at'), 201: answer('added_at'), 401: errors, 404: errors, 422: errors }
const inForm = answer('added_at', 'referrer', 'referrer_utm_parameters')
const addedToForm = { ...added, 200: inForm, 201: inForm }

const listOf = (what: string, item: object) => ({
  type: 'object',
  required: [what, 'pagination'],
  properties: { [what]: { type: 'array', items: item } },
})
const someOf = { answers: { 200: listOf('subscribers', subscriberWith()), 401: errors, 404: errors } }

/** Facts of https://developers.kit.com/api-reference/v4.json (4.0) for the calls that we make. */
export const kitCalls: Documented = {
  'GET /v4/account': {
    answers: {
      200: { type: 'object', required: ['user', 'account'], properties: { account: { required: ['id', 'name'] } } },
      401: errors,
    },
  },
  'GET /v4/subscribers': {
    answers: {
      200: listOf('subscribers', subscriberWith()),
      401: errors,
    },
  },
  'POST /v4/subscribers': {
    body: {
      type: 'object',
      additionalProperties: false,
      required: ['email_address'],
      properties: {
        email_address: text,
        first_name: { type: ['string', 'null'] },
        state: { enum: ['active', 'cancelled', 'bounced', 'complained', 'inactive', null] },
        // By the key of each. The document says of an unknown one that it is refused, and that it is ignored.
        fields: { type: 'object', additionalProperties: text },
      },
    },
    answers: { 200: answer(), 201: answer(), 202: answer(), 401: errors, 422: errors },
  },
  'POST /v4/tags/{tag_id}/subscribers': { body: address, answers: tagged },
  'POST /v4/tags/{tag_id}/subscribers/{id}': { body: nothing, answers: tagged },
  'POST /v4/sequences/{sequence_id}/subscribers': { body: address, answers: added },
  'POST /v4/sequences/{sequence_id}/subscribers/{id}': { body: nothing, answers: added },
  'POST /v4/forms/{form_id}/subscribers': {
    body: { ...address, properties: { email_address: text, referrer } },
    answers: addedToForm,
  },
  'POST /v4/forms/{form_id}/subscribers/{id}': { body: { ...nothing, properties: { referrer } }, answers: addedToForm },
  'GET /v4/tags/{tag_id}/subscribers': someOf,
  'GET /v4/sequences/{sequence_id}/subscribers': someOf,
  'GET /v4/forms/{form_id}/subscribers': someOf,
  'GET /v4/custom_fields': {
    answers: {
      200: listOf('custom_fields', {
        type: 'object',
        required: ['id', 'name', 'key', 'label'],
        properties: { id: { type: 'integer' }, name: text, key: text, label: text },
      }),
      401: errors,
    },
  },
}
