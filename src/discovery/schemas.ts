import { EMAIL_MAX, EMAIL_PATTERN } from '../signup/contact.ts'
import { INVISIBLE, NAME_MAX, SPACE } from '../signup/parse.ts'

/**
 * The bodies of the API in JSON Schema 2020-12, the dialect of OpenAPI 3.1. Members of a success are all optional, so that one
 * document is true for every configuration.
 */

const CONTROL = '\\u0000-\\u001F\\u007F-\\u009F'

const padded = (pattern: string): string => `^[${SPACE}]*${pattern}[${SPACE}]*$`

/**
 * The request as it arrives, with white space around the values: a plain `maxLength` or `format: email` would refuse bodies
 * that the service accepts.
 */
export const signupRequest = {
  type: 'object',
  description: 'A person who wants to join. Other members are ignored; if a member is repeated, the last one counts.',
  required: ['name', 'email'],
  properties: {
    name: {
      type: 'string',
      description:
        'What to call the person: 1 to 100 Unicode code points, at least one of them visible. Surrounding white space is removed first. Control characters, line separators and unpaired surrogates are refused.',
      minLength: 1,
      pattern: padded(`[^${SPACE}${CONTROL}](?:[^${CONTROL}\\u2028\\u2029]{0,${NAME_MAX - 2}}[^${SPACE}${CONTROL}])?`),
      allOf: [{ pattern: `[^${SPACE}${INVISIBLE}]` }],
      'x-after-trimming': { minLength: 1, maxLength: NAME_MAX },
      examples: ['Ada Lovelace'],
    },
    email: {
      type: 'string',
      description:
        'The email address: at most 255 ASCII characters, with a domain of at least two labels (an internationalised one in its `xn--` form). Surrounding white space is removed first. Addresses that differ only in case belong to the same contact.',
      minLength: 1,
      pattern: padded(EMAIL_PATTERN),
      allOf: [{ pattern: padded(`[^${SPACE}]{1,${EMAIL_MAX}}`) }],
      'x-after-trimming': { format: 'email', maxLength: EMAIL_MAX },
      examples: ['ada@example.com'],
    },
  },
  examples: [{ name: 'Ada Lovelace', email: 'ada@example.com' }],
} as const

export const signupResult = {
  type: 'object',
  description: 'The signup is stored durably.',
  properties: {
    success: { type: 'boolean', const: true, description: 'Always `true`: failures are answered with an error.' },
    message: { type: 'string', maxLength: 200, description: 'A sentence that can be shown to the visitor.' },
    contactId: {
      type: 'string',
      minLength: 1,
      maxLength: 255,
      description: 'Identifies a contact that this signup put on the list. Absent otherwise; never null.',
    },
    alreadyExisted: {
      type: 'boolean',
      description:
        'Whether the address was there before. If so, nothing changes: the name and the spelling of the first signup stay.',
    },
    automationTriggered: {
      type: 'boolean',
      description:
        'Whether this signup started the automation. Its event is stored together with the contact, and delivered at least once.',
    },
  },
  examples: [
    {
      success: true,
      message: 'You are on the waitlist.',
      contactId: '01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e6f',
      alreadyExisted: false,
      automationTriggered: true,
    },
    { success: true, message: 'You are already on the waitlist.', alreadyExisted: true, automationTriggered: false },
  ],
} as const

const text = (maxLength: number, description: string, more: object = {}) => ({
  type: 'string',
  maxLength,
  description,
  ...more,
})
const uri = (description: string) => text(2048, description, { format: 'uri' })
const serviceName = text(100, 'The name of the service, set by its operator.')
const purpose = text(500, 'What the service is for, set by its operator.')

export const selfDescription = {
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

export const healthReport = {
  type: 'object',
  description: 'The process and its store can take signups.',
  properties: {
    status: { type: 'string', const: 'ok', description: 'Always `ok`: anything else is answered with an error.' },
    service: serviceName,
    description: purpose,
    time: text(24, 'The time of this report in UTC (RFC 3339, milliseconds).', {
      format: 'date-time',
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
    }),
  },
}

export const challenge = {
  type: 'object',
  description: 'A challenge of ALTCHA, protocol 2, for its widget.',
  required: ['parameters', 'signature'],
  properties: {
    parameters: { type: 'object', description: 'What is to be solved, how hard it is, and until when.' },
    signature: text(64, 'Proves that this service made it.'),
  },
  examples: [
    { parameters: { algorithm: 'PBKDF2/SHA-256', cost: 5000, expiresAt: 1795384343 }, signature: '3124…0ad6' },
  ],
}

const linkTargets = {
  type: 'array',
  maxItems: 10,
  items: {
    type: 'object',
    required: ['href'],
    properties: { href: uri('The target.'), type: text(100, 'The media type to expect there.') },
  },
}

export const linkset = {
  type: 'object',
  description: 'A set of links in JSON (RFC 9264 §4.2).',
  required: ['linkset'],
  additionalProperties: false,
  properties: {
    linkset: {
      type: 'array',
      maxItems: 10,
      description: 'One entry for each resource that has links: its address, and for each relation what it links to.',
      items: {
        type: 'object',
        required: ['anchor'],
        properties: { anchor: uri('The resource that has these links.') },
        additionalProperties: linkTargets,
      },
    },
  },
}

export const errorBody = {
  type: 'object',
  description: 'The body of every error, whatever its status. It is plain JSON on purpose, not RFC 9457 problem+json.',
  required: ['error'],
  additionalProperties: false,
  properties: { error: text(200, 'One sentence that can be shown to a visitor.', { minLength: 1 }) },
}
