import { BODY_LIMIT } from '../http/limits.ts'
import { paths } from '../http/paths.ts'
import { sentences } from '../messages/sentences.ts'
import { sourceParameters } from '../signup/contact.ts'
import { catalog, catalogLink, descriptionLinks, LINKSET } from './catalog.ts'
import { schemas } from './schemas.ts'

export interface Installation {
  /** The public origin, without a slash at the end. */
  readonly base: string
  readonly service: string
  readonly description: string
  readonly version: string
  /** Whether there is `/api/challenge`. */
  readonly issuesChallenges: boolean
}

const operation = (operationId: string, summary: string, description: string) => ({
  operationId,
  tags: ['Waitlist'],
  summary,
  description,
})
const header = (description: string, schema: object = { type: 'string' }, required = false) => ({
  description,
  required,
  schema,
})
const constant = (text: string) => ({ type: 'string', const: text })

const noStore = header('No cache may store the answer.', constant('no-store'), true)
const retryAfter = header('Seconds until the next attempt is admitted.', { type: 'integer', minimum: 1 }, true)
const rateLimit = {
  RateLimit: header('What is left of the quota: `r` attempts, and `t` seconds until there is one more.'),
  'RateLimit-Policy': header('The quota: `q` attempts for each client, refilled evenly over `w` seconds.'),
}
const saved = (required: boolean) =>
  header('The signup is stored and will be completed, so it need not be sent again.', constant('saved'), required)

const json = (schema: keyof typeof schemas, example: object) => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, example },
})
const error = (description: string, sentence: string, headers: object = {}) => ({
  description,
  headers: { 'Cache-Control': noStore, ...headers },
  content: json('Error', { error: sentence }),
})
const tooMany = (sentence: string, headers: object = {}) =>
  error('This client has tried too often.', sentence, { 'Retry-After': retryAfter, ...headers })
const otherErrors = {
  '4XX': error('The request cannot be served as it is.', 'this method is not allowed here'),
  500: error('The service is temporarily unavailable.', sentences.unavailable),
}

const joinWaitlist = {
  ...operation(
    'joinWaitlist',
    'Join the waitlist',
    'Adds a person to the waitlist, once, however often it is sent. If the service asks for a challenge, its solution is sent in the member that its widget fills in (`altcha`, `cf-turnstile-response`, `h-captcha-response`, `cap-token`), or in the header `X-Captcha-Response`. The query may say where the person came from: `utm_source`, `utm_medium`, `utm_campaign`, `utm_term`, `utm_content`, `ref`.',
  ),
  parameters: sourceParameters.map(name => ({
    name,
    in: 'query',
    description: 'Where the person came from. Never a reason to refuse a signup.',
    schema: { type: 'string' },
  })),
  requestBody: {
    required: true,
    description: `At most ${BODY_LIMIT} bytes of JSON.`,
    content: json('SignupRequest', { name: 'Ada Lovelace', email: 'ada@example.com' }),
  },
  responses: {
    200: {
      description: 'The signup is stored durably.',
      headers: {
        'Cache-Control': noStore,
        'Set-Cookie': header(
          'The membership cookie.',
          { type: 'string', pattern: '^(__Host-)?waitlist=1; Path=/; Max-Age=\\d+; HttpOnly' },
          true,
        ),
        ...rateLimit,
      },
      content: json('SignupResult', {
        success: true,
        message: sentences.new,
        contactId: '01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e6f',
        alreadyExisted: false,
        automationTriggered: true,
      }),
    },
    400: error('The first problem of the request.', sentences.emailInvalid, rateLimit),
    413: error('The body is too large.', `the request body must be at most ${BODY_LIMIT} bytes`, rateLimit),
    415: error('The body is not JSON, or it is compressed.', 'the Content-Type must be application/json', {
      Accept: header('The media type that is accepted (RFC 9110 §15.5.16).'),
      'Accept-Post': header('The same, for POST alone.'),
      'Accept-Encoding': header('The encoding that is accepted, if the encoding was the problem.'),
      ...rateLimit,
    }),
    429: tooMany(sentences.tooManyAttempts.replace('{wait}', '30 seconds'), rateLimit),
    ...otherErrors,
    500: error(
      'The service is temporarily unavailable. Try again, unless `Waitlist-Signup` says that the signup is saved.',
      sentences.unavailable,
      { 'Waitlist-Signup': saved(false), ...rateLimit },
    ),
    502: error(
      'The email provider could not be reached. The signup is saved and will be completed.',
      sentences.providerSaved,
      { 'Waitlist-Signup': saved(true), ...rateLimit },
    ),
  },
}

const getChallenge = {
  ...operation(
    'getChallenge',
    'Get a challenge',
    'A challenge of ALTCHA. Its solution is good for ten minutes and one address.',
  ),
  responses: {
    200: {
      description: 'The challenge.',
      headers: { 'Cache-Control': noStore },
      content: json('Challenge', {
        parameters: { algorithm: 'PBKDF2/SHA-256', cost: 5000, expiresAt: 1795384343 },
        signature: '3124…0ad6',
      }),
    },
    429: tooMany('too many challenges, please try again in 30 seconds'),
    ...otherErrors,
  },
}

/**
 * The OpenAPI 3.1 document: the same for every configuration, but for the names of the service and `/api/challenge`. It
 * describes every endpoint and every answer. Left out are `/`, the files of the form, the pages behind links in mails, and the
 * headers for security and CORS and those that Node adds.
 */
export function openapi(installation: Installation) {
  const { base, service, description, version, issuesChallenges } = installation

  /** A document that does not change while the service runs. */
  const get = (described: object, content: object, { maxAge = 3600, link = catalogLink(base), vary = '' } = {}) => {
    const headers = {
      'Cache-Control': header('How long a copy is good.', constant(`public, max-age=${maxAge}`), true),
      ETag: header('Identifies these bytes; send it back in If-None-Match.', { type: 'string' }, true),
      Link: header('Related resources (RFC 8288).', { type: 'string', examples: [link] }, true),
      ...(vary && { Vary: header('What the answer depends on.', constant(vary), true) }),
    }
    const responses = {
      200: { description: 'The document.', headers, content },
      304: { description: 'The copy that the client holds is still current.', headers },
      ...otherErrors,
    }
    return { get: { ...described, responses } }
  }

  const { Challenge, ...others } = schemas
  const health = { status: 'ok', service, description, time: '2026-11-20T12:00:00.000Z' }
  return {
    openapi: '3.1.1',
    info: {
      title: `${service} API`,
      summary: 'Join an early-access waitlist.',
      description,
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: service, url: base + paths.docs },
    },
    servers: [{ url: base, description: 'This installation.' }],
    security: [],
    tags: [{ name: 'Waitlist', description: 'Joining the waitlist, and what describes it.' }],
    externalDocs: { description: 'The documentation for people', url: base + paths.docs },
    paths: {
      [paths.waitlist]: {
        post: joinWaitlist,
        ...get(
          operation('describeWaitlist', 'Describe this endpoint', 'What it is, and where it is described.'),
          json('SelfDescription', selfDescription(installation)),
          { maxAge: 300, link: descriptionLinks(base) },
        ),
      },
      ...(issuesChallenges && { [paths.challenge]: { get: getChallenge } }),
      [paths.health]: {
        get: {
          ...operation(
            'getHealth',
            'Report health',
            'Whether signups can be taken. An outage of the email provider does not count.',
          ),
          responses: {
            200: {
              description: 'The service can take signups.',
              headers: { 'Cache-Control': noStore },
              content: json('HealthReport', health),
            },
            503: error('It cannot, or is shutting down.', 'the service is shutting down'),
            ...otherErrors,
          },
        },
      },
      [paths.catalog]: get(
        operation(
          'getApiCatalog',
          'Find this API',
          'The API catalog of this host (RFC 9727): a linkset of the API and its descriptions.',
        ),
        { [LINKSET]: { ...json('Linkset', catalog(base))['application/json'] } },
      ),
      [paths.openapi]: get(operation('getOpenapi', 'Describe this API for programs', 'The OpenAPI document.'), {
        'application/json': { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } },
      }),
      [paths.docs]: get(
        operation(
          'getDocumentation',
          'Describe this API for people',
          'A page, or Markdown if `Accept` prefers `text/markdown`.',
        ),
        {
          'text/html': { schema: { type: 'string', description: 'An HTML page.' } },
          'text/markdown': { schema: { type: 'string', description: 'The same in Markdown (RFC 7763).' } },
        },
        { vary: 'Accept' },
      ),
    },
    components: { schemas: issuesChallenges ? schemas : others },
  }
}

export type OpenapiDocument = ReturnType<typeof openapi>

/** What `GET /api/waitlist` says. */
export const selfDescription = ({ base, service, description }: Installation) => ({
  name: service,
  description,
  methods: ['GET', 'POST'],
  'service-desc': base + paths.openapi,
  'service-doc': base + paths.docs,
  status: base + paths.health,
})
