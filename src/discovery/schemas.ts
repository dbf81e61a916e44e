import { EMAIL_MAX, EMAIL_PATTERN } from '../signup/contact.ts'
import { CONTROL, INVISIBLE, NAME_MAX, SPACE } from '../signup/parse.ts'

/**
 * The bodies of the API in JSON Schema 2020-12, the dialect of OpenAPI 3.1. Members of a success are all optional, so that one
 * document is true for every configuration.
 */

const padded = (pattern: string): string => `^[${SPACE}]*${pattern}[${SPACE}]*$`

/**
 * The request as it arrives, with white space around the values: a plain `maxLength` or `format: email` would refuse bodies
 * that the service accepts.
 */
export const signupRequest = {
  type: 'object',
  description: 'A person who wants to join. Other members are ignored.',
  required: ['name', 'email'],
  properties: {
    name: {
      type: 'string',
      description: `What to call the person: 1 to ${NAME_MAX} characters, at least one of them visible, and no control characters. Surrounding white space is removed.`,
      minLength: 1,
      pattern: padded(`[^${SPACE}${CONTROL}](?:[^${CONTROL}]{0,${NAME_MAX - 2}}[^${SPACE}${CONTROL}])?`),
      allOf: [{ pattern: `[^${SPACE}${INVISIBLE}]` }],
      'x-after-trimming': { minLength: 1, maxLength: NAME_MAX },
    },
    email: {
      type: 'string',
      description: `The email address: at most ${EMAIL_MAX} ASCII characters. Upper and lower case make no difference.`,
      minLength: 1,
      pattern: padded(EMAIL_PATTERN),
      allOf: [{ pattern: padded(`[^${SPACE}]{1,${EMAIL_MAX}}`) }],
      'x-after-trimming': { format: 'email', maxLength: EMAIL_MAX },
    },
  },
} as const

const text = (maxLength: number, description: string, more: object = {}) => ({
  type: 'string',
  maxLength,
  description,
  ...more,
})
const flag = (description: string) => ({ type: 'boolean', description })
const uri = (description: string) => text(2048, description, { format: 'uri' })
const serviceName = text(100, 'The name of the service.')
const purpose = text(500, 'What the service is for.')

const signupResult = {
  type: 'object',
  description: 'The signup is stored durably.',
  properties: {
    success: { ...flag('Always `true`: failures are answered with an error.'), const: true },
    message: text(200, 'A sentence for the visitor.'),
    contactId: text(255, 'The new contact, if it has an id. Never null.', { minLength: 1 }),
    alreadyExisted: flag('Whether the address was there before. If so, nothing changes.'),
    automationTriggered: flag('Whether the event of a new contact is stored. It is delivered at least once.'),
  },
}

const selfDescription = {
  type: 'object',
  description: 'What this endpoint is and where it is described.',
  properties: {
    name: serviceName,
    description: purpose,
    methods: {
      type: 'array',
      const: ['GET', 'POST'],
      maxItems: 2,
      items: { type: 'string', maxLength: 4 },
      description: 'The methods of this endpoint.',
    },
    'service-desc': uri('The OpenAPI document (RFC 8631).'),
    'service-doc': uri('The documentation for people (RFC 8631).'),
    status: uri('The health report (RFC 8631).'),
  },
}

const healthReport = {
  type: 'object',
  description: 'The service can take signups.',
  properties: {
    status: { type: 'string', const: 'ok', description: 'Always `ok`: anything else is answered with an error.' },
    service: serviceName,
    description: purpose,
    time: text(24, 'The time of this report in UTC.', {
      format: 'date-time',
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
    }),
  },
}

const challenge = {
  type: 'object',
  description: 'A challenge of ALTCHA, protocol 2.',
  required: ['parameters', 'signature'],
  properties: {
    parameters: { type: 'object', description: 'What is to be solved, how hard it is, and until when.' },
    signature: text(64, 'Proves that this service made it.'),
  },
}

const list = (properties: object, required: string, more: object = {}) => ({
  type: 'array',
  maxItems: 10,
  items: { type: 'object', required: [required], properties, ...more },
})

const linkset = {
  type: 'object',
  description: 'A set of links in JSON (RFC 9264 §4.2).',
  required: ['linkset'],
  additionalProperties: false,
  properties: {
    linkset: {
      description: 'An entry for each resource: its address, and for each relation what it links to.',
      ...list({ anchor: uri('The resource that has these links.') }, 'anchor', {
        additionalProperties: list({ href: uri('The target.'), type: text(100, 'Its media type.') }, 'href'),
      }),
    },
  },
}

const error = {
  type: 'object',
  description: 'The body of every error, whatever its status.',
  required: ['error'],
  additionalProperties: false,
  properties: { error: text(200, 'A sentence for the visitor.', { minLength: 1 }) },
}

/** By the names that the document has for them. */
export const schemas = {
  SignupRequest: signupRequest,
  SignupResult: signupResult,
  SelfDescription: selfDescription,
  HealthReport: healthReport,
  Challenge: challenge,
  Linkset: linkset,
  Error: error,
}
