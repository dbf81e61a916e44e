import type { FromSchema, JSONSchema } from 'json-schema-to-ts'
import { SOLUTION_MAX } from '../../challenges/index.ts'
import { SOLUTION_FIELD, SOLUTION_PATTERN } from '../../challenges/route.ts'
import { EMAIL_MAX, EMAIL_PATTERN } from '../../signup/contact.ts'
import { INVISIBLE, NAME_MAX, SPACE } from '../../signup/parse.ts'
import { sentences } from '../messages/sentences.ts'

/**
 * The bodies of the API in JSON Schema 2020-12, the dialect of OpenAPI 3.1. They are published unchanged, the types of the
 * answers are derived from them, and the tests validate every answer against them.
 */

const CONTROL = '\\u0000-\\u001F\\u007F-\\u009F'

const padded = (pattern: string): string => `^[${SPACE}]*${pattern}[${SPACE}]*$`

/**
 * The request is described as it arrives, with white space around the values: a plain `maxLength` or `format: email`
 * would refuse bodies that the service accepts.
 */
export const signupRequest = {
  type: 'object',
  description: 'A person who wants to join. Other members are ignored; if a member is repeated, the last one counts.',
  required: ['name', 'email'],
  properties: {
    name: {
      type: 'string',
      description:
        'What to call the person: 1 to 100 Unicode code points. Surrounding white space is removed first. At least one must be visible. Control characters, line separators and unpaired surrogates are refused; everything else is kept as sent.',
      minLength: 1,
      pattern: padded(`[^${SPACE}${CONTROL}](?:[^${CONTROL}\\u2028\\u2029]{0,${NAME_MAX - 2}}[^${SPACE}${CONTROL}])?`),
      allOf: [{ pattern: `[^${SPACE}${INVISIBLE}]` }],
      'x-after-trimming': { minLength: 1, maxLength: NAME_MAX },
      examples: ['Ada Lovelace'],
    },
    email: {
      type: 'string',
      description:
        'The email address of the person, at most 255 characters. Surrounding white space is removed first. It must be ASCII, with a domain of at least two labels; send an internationalised domain in its `xn--` form. Addresses that differ only in case belong to the same contact.',
      minLength: 1,
      pattern: padded(EMAIL_PATTERN),
      allOf: [{ pattern: padded(`[^${SPACE}]{1,${EMAIL_MAX}}`) }],
      'x-after-trimming': { format: 'email', maxLength: EMAIL_MAX },
      examples: ['ada@example.com'],
    },
  },
  examples: [{ name: 'Ada Lovelace', email: 'ada@example.com' }],
} as const

/** What stands for a solution in examples: a real one is good once. */
export const SOLUTION_EXAMPLE = 'what-the-widget-puts-here'

/** The same while a challenge must be solved: `member` has the solution, unless the header has it. */
export const signupRequestWith = (member: string) => ({
  ...signupRequest,
  properties: {
    ...signupRequest.properties,
    [member]: {
      type: 'string',
      description: `The solution of the challenge, as its widget puts it into a form. Required, unless the header \`${SOLUTION_FIELD}\` has it.`,
      minLength: 1,
      maxLength: SOLUTION_MAX,
      pattern: SOLUTION_PATTERN,
      examples: [SOLUTION_EXAMPLE],
    },
  },
  examples: [{ ...signupRequest.examples[0], [member]: SOLUTION_EXAMPLE }],
})

export const signupResult = {
  type: 'object',
  description: 'The signup is on the list and durably stored.',
  properties: {
    success: { type: 'boolean', const: true, description: 'Always `true`: failures are answered with an error.' },
    message: { type: 'string', maxLength: 200, description: 'A sentence that can be shown to the visitor.' },
    contactId: {
      type: 'string',
      minLength: 1,
      maxLength: 255,
      description: 'Identifies a new contact. Absent if the address was already listed; never null.',
    },
    alreadyExisted: {
      type: 'boolean',
      description:
        'Whether the address was already on the list. If so, nothing changes: the name and the spelling of the first signup stay.',
    },
    automationTriggered: {
      type: 'boolean',
      description:
        'Whether this signup started the automation. Its event is recorded together with the contact and is delivered at least once.',
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
} as const satisfies JSONSchema

/** The same where a signup may be held. */
export const signupResultOrHeld = {
  ...signupResult,
  description: 'The signup is durably stored.',
  properties: {
    ...signupResult.properties,
    contactId: {
      ...signupResult.properties.contactId,
      description:
        'Identifies a new contact. Absent if the address was already listed, or if the signup is held; never null.',
    },
    alreadyExisted: {
      ...signupResult.properties.alreadyExisted,
      description:
        'Whether the address was already on the list, or held. If so, nothing changes: the name and the spelling of the first signup stay.',
    },
  },
  examples: [
    ...signupResult.examples,
    { success: true, message: 'Your signup is recorded.', alreadyExisted: false, automationTriggered: false },
  ],
} as const satisfies JSONSchema

/** The same where a new address must be confirmed first. */
export const signupResultOrAsked = {
  ...signupResultOrHeld,
  properties: {
    ...signupResultOrHeld.properties,
    contactId: {
      ...signupResult.properties.contactId,
      description: 'Identifies a contact that is on the list by this signup. Absent otherwise; never null.',
    },
    automationTriggered: {
      ...signupResult.properties.automationTriggered,
      description: 'Whether this signup started the automation. A new address starts it when it is confirmed.',
    },
  },
  examples: [
    { success: true, message: sentences.unconfirmed, alreadyExisted: false, automationTriggered: false },
    ...signupResult.examples.slice(1),
  ],
} as const satisfies JSONSchema

/** The same where membership is not disclosed. */
export const recordedResult = {
  type: 'object',
  description: 'The signup is durably stored. The answer does not say whether the address was on the list before.',
  properties: { success: signupResult.properties.success, message: signupResult.properties.message },
  examples: [{ success: true, message: 'Your signup is recorded.' }],
} as const satisfies JSONSchema

/** The same where that depends on a confirmation. */
export const recordedResultOrAsked = {
  ...recordedResult,
  examples: [{ success: true, message: sentences.recordedOrAsked }],
} as const satisfies JSONSchema

const link = (description: string) =>
  ({ type: 'string', format: 'uri', maxLength: 2048, description }) as const satisfies JSONSchema

export const selfDescription = {
  type: 'object',
  description: 'What this endpoint is and where it is described.',
  properties: {
    name: { type: 'string', maxLength: 100, description: 'The name of the service, set by its operator.' },
    description: { type: 'string', maxLength: 500, description: 'What the service is for, set by its operator.' },
    methods: {
      type: 'array',
      const: ['GET', 'POST'],
      maxItems: 2,
      items: { type: 'string', maxLength: 4 },
      description: 'The methods of this endpoint.',
    },
    'service-desc': link('The OpenAPI document (RFC 8631).'),
    'service-doc': link('The documentation for people (RFC 8631).'),
    status: link('The health report (RFC 8631).'),
  },
} as const satisfies JSONSchema

export const healthReport = {
  type: 'object',
  description: 'The process and its store can take signups.',
  properties: {
    status: { type: 'string', const: 'ok', description: 'Always `ok`: anything else is answered with an error.' },
    service: { type: 'string', maxLength: 100, description: 'The name of the service, set by its operator.' },
    description: { type: 'string', maxLength: 500, description: 'What the service is for, set by its operator.' },
    time: {
      type: 'string',
      format: 'date-time',
      maxLength: 24,
      pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$',
      description: 'The time of this report in UTC (RFC 3339, milliseconds).',
    },
  },
} as const satisfies JSONSchema

export const challengeIssued = {
  type: 'object',
  description: 'A challenge of ALTCHA, protocol 2, for its widget.',
  required: ['parameters', 'signature'],
  properties: {
    parameters: { type: 'object', description: 'What is to be solved, how hard it is, and until when.' },
    signature: { type: 'string', maxLength: 64, description: 'Says that this service has made it.' },
  },
  examples: [
    {
      parameters: {
        algorithm: 'PBKDF2/SHA-256',
        cost: 5000,
        expiresAt: 1795384343,
        keyLength: 32,
        keyPrefix: 'b430bab7d9c7450f6e7589791fd1994d',
        keySignature: '8d4bbab31e7a5a394e05d5efbcc8c3927d7107dd39d12373461843a9633baf75',
        nonce: 'be0b48d36d2113695471dfee2a2259dd',
        salt: '7c49dcbd0171a434b3e0e38efd9f1812',
      },
      signature: '3124152709d419c32389bb188189b367084b937359fd0a2fa695cc6e73e10ad6',
    },
  ],
} as const satisfies JSONSchema

const linkTarget = {
  type: 'object',
  required: ['href'],
  properties: {
    href: link('The target.'),
    type: { type: 'string', maxLength: 100, description: 'The media type to expect there.' },
  },
} as const satisfies JSONSchema

const linkTargets = (description: string) =>
  ({ type: 'array', maxItems: 10, items: linkTarget, description }) as const satisfies JSONSchema

export const linkset = {
  type: 'object',
  description: 'A set of links in JSON (RFC 9264 §4.2).',
  required: ['linkset'],
  additionalProperties: false,
  properties: {
    linkset: {
      type: 'array',
      maxItems: 10,
      description: 'One entry for each resource that has links.',
      items: {
        type: 'object',
        required: ['anchor'],
        additionalProperties: false,
        properties: {
          anchor: link('The resource that has these links.'),
          'service-desc': linkTargets('Machine-readable descriptions.'),
          'service-doc': linkTargets('Documentation for people.'),
          status: linkTargets('Health reports.'),
          item: linkTargets('The APIs in this catalog (RFC 9727 §3.1).'),
        },
      },
    },
  },
} as const satisfies JSONSchema

export const errorBody = {
  type: 'object',
  description:
    'Every error has this body, whatever its status. It is plain JSON on purpose, not RFC 9457 problem+json.',
  required: ['error'],
  additionalProperties: false,
  properties: {
    error: {
      type: 'string',
      minLength: 1,
      maxLength: 200,
      description: 'One sentence that can be shown to a visitor.',
    },
  },
} as const satisfies JSONSchema

/** The schemas make every member optional, so that clients rely on none; we always send all but `contactId`. */
export type SignupResult = Required<Omit<FromSchema<typeof signupResult>, 'contactId'>> & {
  contactId?: string | undefined
}
export type SelfDescription = Required<FromSchema<typeof selfDescription>>
export type HealthReport = Required<FromSchema<typeof healthReport>>
export type Linkset = FromSchema<typeof linkset>
