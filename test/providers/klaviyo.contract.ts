import type { Documented } from '../harness/wire.ts'

/**
 * Facts of https://github.com/klaviyo/openapi (stable, revision 2026-07-15). All errors are one shape there, without `meta`;
 * that of the 409, `duplicate_profile_id`, is from https://github.com/klaviyo/klaviyo-api-node/issues/75.
 */

const text = { type: 'string' }
const object = { type: 'object' }

const resource = (type: string, members: object, required: readonly string[] = []) => ({
  type: 'object',
  required: ['type', ...required],
  additionalProperties: false,
  properties: { type: { const: type }, ...members },
})

const only = (members: object, required: readonly string[] = []) => ({
  type: 'object',
  required,
  additionalProperties: false,
  properties: members,
})

const data = (inner: object) => only({ data: inner }, ['data'])

const identity = {
  email: text,
  phone_number: text,
  external_id: text,
  first_name: text,
  last_name: text,
  organization: text,
  locale: text,
  title: text,
  image: text,
  location: object,
  properties: object,
}

const errors = {
  type: 'object',
  required: ['errors'],
  properties: {
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'code', 'title', 'detail'],
        properties: {
          id: text,
          code: text,
          title: text,
          detail: text,
          source: { type: 'object', properties: { pointer: text, parameter: text } },
        },
      },
    },
  },
}
const refusals = { 400: errors, 401: errors, 403: errors, 404: errors, 409: errors, 410: errors, 415: errors }

const profile = {
  type: 'object',
  required: ['type', 'id', 'attributes', 'links'],
  properties: {
    type: { const: 'profile' },
    id: text,
    attributes: {
      type: 'object',
      properties: {
        created: text,
        subscriptions: only({
          email: only({ marketing: { type: 'object', required: ['can_receive_email_marketing', 'consent'] } }),
        }),
      },
    },
  },
}

const list = {
  type: 'object',
  required: ['type', 'id', 'attributes', 'links'],
  properties: { type: { const: 'list' }, id: text, attributes: { type: 'object', properties: { name: text } } },
}

const consenting = only({ consent: { const: 'SUBSCRIBED' }, consented_at: text }, ['consent'])
const subscriber = resource(
  'profile',
  {
    id: text,
    attributes: only(
      {
        email: text,
        phone_number: text,
        subscriptions: only({ email: only({ marketing: consenting, open_tracking: object }), sms: object }),
      },
      ['subscriptions'],
    ),
  },
  ['attributes'],
)

export const klaviyoContract: Documented = {
  'POST /api/profiles': {
    body: data(resource('profile', { attributes: only(identity) }, ['attributes'])),
    answers: { 201: { type: 'object', required: ['data'], properties: { data: profile } }, ...refusals },
  },
  'GET /api/profiles': {
    answers: {
      200: { type: 'object', required: ['data', 'links'], properties: { data: { type: 'array', items: profile } } },
      ...refusals,
    },
  },
  'GET /api/profiles/{id}': {
    answers: { 200: { type: 'object', required: ['data'], properties: { data: profile } }, ...refusals },
  },
  'POST /api/lists/{id}/relationships/profiles': {
    body: data({ type: 'array', maxItems: 1_000, items: resource('profile', { id: text }, ['id']) }),
    answers: { 204: null, ...refusals },
  },
  'GET /api/lists/{id}': {
    answers: { 200: { type: 'object', required: ['data'], properties: { data: list } }, ...refusals },
  },
  'POST /api/profile-subscription-bulk-create-jobs': {
    body: data(
      resource(
        'profile-subscription-bulk-create-job',
        {
          attributes: only(
            {
              custom_source: text,
              historical_import: { type: 'boolean' },
              profiles: data({ type: 'array', maxItems: 1_000, items: subscriber }),
            },
            ['profiles'],
          ),
          relationships: only({ list: data(resource('list', { id: text }, ['id'])) }),
        },
        ['attributes'],
      ),
    ),
    answers: { 202: null, ...refusals },
  },
  'POST /api/data-privacy-deletion-jobs': {
    body: data(
      resource(
        'data-privacy-deletion-job',
        {
          attributes: only(
            {
              profile: data(
                resource('profile', { id: text, attributes: only({ email: text, phone_number: text }) }, [
                  'attributes',
                ]),
              ),
            },
            ['profile'],
          ),
        },
        ['attributes'],
      ),
    ),
    answers: { 202: null, ...refusals },
  },
  'POST /api/events': {
    body: data(
      resource(
        'event',
        {
          attributes: only(
            {
              properties: object,
              time: text,
              value: { type: 'number' },
              value_currency: text,
              unique_id: text,
              backfill: { type: 'boolean' },
              metric: data(resource('metric', { attributes: only({ name: text, service: text }, ['name']) })),
              profile: data(
                resource('profile', { id: text, attributes: only({ ...identity, anonymous_id: text, meta: object }) }, [
                  'attributes',
                ]),
              ),
            },
            ['properties', 'metric', 'profile'],
          ),
        },
        ['attributes'],
      ),
    ),
    answers: { 202: null, ...refusals },
  },
}
