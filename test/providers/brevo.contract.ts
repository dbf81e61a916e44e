import type { Documented } from '../harness/wire.ts'

/**
 * Facts of Brevo's own OpenAPI documents (Contact Management 1.0.0, and the types of its client 6.0.3 for the others). 401 is
 * in them for events alone, but is the same everywhere; 204 of a double opt-in was in an earlier version. Members that we do
 * not use are left out of the answers, unless they are required.
 */

const text = { type: 'string' }
const yesOrNo = { type: 'boolean' }
const id = { type: 'integer' }
const ids = { type: 'array', items: id }
const attributes = {
  type: 'object',
  additionalProperties: { type: ['string', 'number', 'boolean', 'array'], items: text },
}

const error = {
  type: 'object',
  required: ['message'],
  properties: { code: text, message: text, metadata: { type: 'object' } },
}
const codes = [
  'invalid_parameter',
  'missing_parameter',
  'document_not_found',
  'account_in_process',
  'duplicate_parameter',
  'method_not_allowed',
  'out_of_range',
]
const contactError = {
  ...error,
  required: ['code', 'message'],
  properties: { ...error.properties, code: { enum: codes } },
}

const answering = (properties: object) => ({ type: 'object', required: Object.keys(properties), properties })

export const brevoContract: Documented = {
  'GET /v3/contacts/attributes': {
    answers: {
      200: answering({
        attributes: {
          type: 'array',
          items: {
            type: 'object',
            required: ['category', 'name'],
            properties: {
              name: text,
              category: { enum: ['normal', 'transactional', 'category', 'calculated', 'global'] },
              type: { enum: ['text', 'date', 'float', 'id', 'boolean', 'multiple-choice', 'user'] },
            },
          },
        },
      }),
      400: error,
      401: error,
    },
  },
  'GET /v3/contacts/lists/{list}': {
    answers: {
      200: answering({
        id,
        name: text,
        folderId: id,
        createdAt: text,
        totalBlacklisted: id,
        totalSubscribers: id,
        uniqueSubscribers: id,
      }),
      400: error,
      401: error,
      404: error,
    },
  },
  'POST /v3/contacts/lists/{list}/contacts/add': {
    body: {
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      maxProperties: 1,
      properties: { emails: { type: 'array', items: text }, ids, extIds: { type: 'array', items: text } },
    },
    answers: {
      201: answering({
        contacts: { type: 'object', properties: { success: { type: 'array' }, failure: { type: 'array' } } },
      }),
      400: error,
      401: error,
      404: error,
    },
  },
  'POST /v3/contacts': {
    body: {
      type: 'object',
      additionalProperties: false,
      properties: {
        attributes,
        email: text,
        emailBlacklisted: yesOrNo,
        ext_id: text,
        listIds: ids,
        smsBlacklisted: yesOrNo,
        updateEnabled: yesOrNo,
        forceMerge: yesOrNo,
        getId: yesOrNo,
      },
    },
    answers: { 201: { type: 'object', properties: { id } }, 400: contactError, 401: error, 425: contactError },
  },
  'POST /v3/contacts/doubleOptinConfirmation': {
    body: {
      type: 'object',
      required: ['email', 'includeListIds', 'redirectionUrl', 'templateId'],
      additionalProperties: false,
      properties: {
        attributes,
        email: text,
        excludeListIds: ids,
        includeListIds: ids,
        redirectionUrl: text,
        templateId: id,
      },
    },
    answers: { 201: null, 204: null, 400: error, 401: error },
  },
  'GET /v3/contacts/{identifier}': {
    answers: {
      200: answering({
        attributes: { type: 'object' },
        createdAt: text,
        emailBlacklisted: yesOrNo,
        id,
        listIds: ids,
        modifiedAt: text,
        smsBlacklisted: yesOrNo,
        whatsappBlacklisted: yesOrNo,
        statistics: { type: 'object' },
      }),
      400: error,
      401: error,
      404: error,
    },
  },
  'DELETE /v3/contacts/{identifier}': { answers: { 204: null, 400: error, 401: error, 404: error, 405: error } },
  'POST /v3/events': {
    body: {
      type: 'object',
      required: ['event_name', 'identifiers'],
      additionalProperties: false,
      properties: {
        event_name: { type: 'string', maxLength: 255, pattern: '^[A-Za-z0-9_-]+$' },
        identifiers: {
          type: 'object',
          additionalProperties: false,
          minProperties: 1,
          properties: { contact_id: id, email_id: text, ext_id: text },
        },
        event_date: text,
        event_properties: { type: 'object' },
        contact_properties: { type: 'object' },
      },
    },
    answers: { 204: null, 400: error, 401: error },
  },
  'GET /v3/smtp/templates/{template}': {
    answers: {
      200: answering({
        createdAt: text,
        // It is only there when one template is asked for, as here.
        doiTemplate: yesOrNo,
        htmlContent: text,
        id,
        isActive: yesOrNo,
        modifiedAt: text,
        name: text,
        replyTo: text,
        sender: { type: 'object' },
        subject: text,
        tag: text,
        testSent: yesOrNo,
        toField: text,
      }),
      400: error,
      401: error,
      404: error,
    },
  },
}
