import type { Documented } from '../harness/wire.ts'

/**
 * Facts of HubSpot's OpenAPI documents, version 2026-09, of 2026-08-21: contacts, properties, lists and custom events. They
 * name `associations` as required for a creation; the reference and the official client leave it out.
 */

const text = { type: 'string' }
const texts = { type: 'object', additionalProperties: text }
const list = { type: 'array', items: text }

const having = (members: Readonly<Record<string, object>>, ...more: readonly string[]) => ({
  type: 'object',
  required: [...Object.keys(members), ...more],
  properties: members,
})

const error = having({ category: text, correlationId: text, message: text })
const refusals = { 400: error, 401: error, 403: error, 404: error, 409: error }

const contact = having({
  id: text,
  properties: { type: 'object', additionalProperties: { type: ['string', 'null'] } },
  createdAt: text,
  updatedAt: text,
  archived: { type: 'boolean' },
})

const property = having({
  name: text,
  label: text,
  description: text,
  type: text,
  fieldType: text,
  groupName: text,
  options: { type: 'array', items: having({ label: text, value: text, hidden: { type: 'boolean' } }) },
})

const segment = having({
  listId: text,
  listVersion: { type: 'integer' },
  name: text,
  objectTypeId: text,
  processingStatus: text,
  processingType: text,
})

export const hubspotContract: Documented = {
  'POST /crm/objects/2026-09/contacts': {
    body: {
      type: 'object',
      required: ['properties'],
      additionalProperties: false,
      properties: { properties: texts, associations: { type: 'array' } },
    },
    answers: { 201: contact, ...refusals },
  },
  'GET /crm/objects/2026-09/contacts': {
    answers: { 200: having({ results: { type: 'array', items: contact } }), ...refusals },
  },
  'GET /crm/objects/2026-09/contacts/{id}': { answers: { 200: contact, ...refusals } },
  'POST /crm/objects/2026-09/contacts/gdpr-delete': {
    body: {
      type: 'object',
      required: ['objectId'],
      additionalProperties: false,
      properties: { objectId: text, idProperty: text },
    },
    answers: { 204: null, ...refusals },
  },
  'GET /crm/properties/2026-09/contacts/{name}': { answers: { 200: property, ...refusals } },
  'GET /crm/lists/2026-09/{id}': { answers: { 200: having({ list: segment }), ...refusals } },
  'PUT /crm/lists/2026-09/{id}/memberships/add': {
    body: list,
    answers: {
      200: having({ recordsIdsAdded: list, recordIdsMissing: list, recordIdsRemoved: list }),
      ...refusals,
    },
  },
  'POST /events/custom/2026-09/send': {
    body: {
      type: 'object',
      required: ['eventName', 'properties'],
      additionalProperties: false,
      properties: {
        eventName: text,
        email: text,
        objectId: text,
        utk: text,
        uuid: text,
        occurredAt: text,
        properties: texts,
      },
    },
    answers: { 204: null, ...refusals },
  },
}
