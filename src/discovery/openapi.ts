import { BODY_LIMIT } from '../http/limits.ts'
import { sentences } from '../http/messages/sentences.ts'
import { paths } from '../http/paths.ts'
import { catalog, catalogLink, descriptionLinks, LINKSET } from './catalog.ts'
import * as schemas from './schemas.ts'

export interface Installation {
  /** The public origin, without a slash at the end. */
  readonly base: string
  readonly service: string
  readonly description: string
  readonly version: string
  /** Whether there is `/api/challenge`. */
  readonly issuesChallenges: boolean
}

const operation = (operationId: string, tag: string, summary: string, description: string) => ({
  operationId,
  tags: [tag],
  summary,
  description,
})
const header = (description: string, schema: object, required = false) => ({ description, required, schema })
const text = (maxLength: number, more: object = {}) => ({ type: 'string', maxLength, ...more })

const noStore = header('No cache may store the answer.', { type: 'string', const: 'no-store' }, true)
const rateLimit = {
  RateLimit: header(
    'What is left of the quota: `r` attempts, and `t` seconds until there is one more.',
    text(100, { examples: ['"signup";r=19;t=30'] }),
  ),
  'RateLimit-Policy': header(
    'The quota: `q` attempts for each client, refilled evenly over `w` seconds.',
    text(100, { examples: ['"signup";q=20;w=600'] }),
  ),
}
const saved = (required: boolean) =>
  header(
    '`saved`: the signup is stored and will be completed, so it need not be sent again.',
    { type: 'string', const: 'saved' },
    required,
  )
const retryAfter = header(
  'Seconds until the next attempt is admitted.',
  { type: 'integer', format: 'int32', minimum: 1, examples: [30] },
  true,
)

const schemaOf = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const json = (schema: string, examples: object) => ({
  'application/json': { schema: schemaOf(schema), examples },
})

/** `examples`: sentences by a name of each. */
const error = (description: string, examples: Readonly<Record<string, string>>, headers: object = {}) => ({
  description,
  headers: { 'Cache-Control': noStore, ...headers },
  content: json(
    'Error',
    Object.fromEntries(Object.entries(examples).map(([name, error]) => [name, { value: { error } }])),
  ),
})
const clientError = error('The request cannot be served as it is.', { method: 'this method is not allowed here' })
const serverError = error('The service is temporarily unavailable.', { unavailable: sentences.unavailable })

/** What is never a reason to refuse a signup. */
const sources = {
  utm_source: 'The site, newsletter or advertiser that the person came from.',
  utm_medium: 'The kind of link.',
  utm_campaign: 'The campaign that the link belongs to.',
  utm_term: 'The search term of a paid link.',
  utm_content: 'Which of several links or advertisements it was.',
  ref: 'Who or what referred the person.',
}

const joinWaitlist = {
  ...operation(
    'joinWaitlist',
    'Waitlist',
    'Join the waitlist',
    `Adds a person to the waitlist. A \`200\` means that the signup is stored durably. Sending the same address again is safe: nothing changes, and no automation starts.

An error names the first problem of a request. If the service asks for a challenge, its solution is sent in the member that its widget fills in (\`altcha\`, \`cf-turnstile-response\`, \`h-captcha-response\`, \`cap-token\`), or in the header \`X-Captcha-Response\`. The query may say where the person came from; some services keep it, all others ignore it.`,
  ),
  parameters: Object.entries(sources).map(([name, description]) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: { type: 'string' },
  })),
  requestBody: {
    required: true,
    description: `At most ${BODY_LIMIT} bytes of JSON.`,
    content: json('SignupRequest', { signup: { value: schemas.signupRequest.examples[0] } }),
  },
  responses: {
    200: {
      description: 'The signup is stored durably. The message says what happens next.',
      headers: {
        'Cache-Control': noStore,
        'Set-Cookie': header(
          'The membership cookie. It says that this browser has signed up, and grants no access.',
          text(400, { pattern: '^(__Host-)?waitlist=1; Path=/; Max-Age=\\d+; HttpOnly' }),
          true,
        ),
        ...rateLimit,
      },
      content: json('SignupResult', {
        new: { summary: 'A new address', value: schemas.signupResult.examples[0] },
        known: { summary: 'An address that is already listed', value: schemas.signupResult.examples[1] },
      }),
    },
    400: error(
      'The body is not a signup.',
      {
        name: sentences.nameMissing,
        email: sentences.emailInvalid,
        domain: sentences.domainNotAccepted,
        syntax: 'the request body must be valid JSON',
        challenge: sentences.challengeMissing,
      },
      rateLimit,
    ),
    413: error('The body is too large.', { size: `the request body must be at most ${BODY_LIMIT} bytes` }, rateLimit),
    415: error(
      'The body is not `application/json`, or it is compressed.',
      { type: 'the Content-Type must be application/json' },
      {
        Accept: header('The media type that is accepted (RFC 9110 §15.5.16).', text(100)),
        'Accept-Post': header('The same, for POST alone.', text(100)),
        'Accept-Encoding': header('The encoding that is accepted, if the encoding was the problem.', text(100)),
        ...rateLimit,
      },
    ),
    429: error(
      'This client has tried too often.',
      { limit: sentences.tooManyAttempts.replace('{wait}', '30 seconds') },
      { 'Retry-After': retryAfter, ...rateLimit },
    ),
    500: error(
      'The service is temporarily unavailable. Try again, unless `Waitlist-Signup` says that the signup is saved.',
      { unavailable: sentences.unavailable, saved: sentences.unavailableSaved },
      { 'Waitlist-Signup': saved(false), ...rateLimit },
    ),
    502: error(
      'The upstream provider could not be reached. The signup is saved and will be completed.',
      { upstream: sentences.providerSaved },
      { 'Waitlist-Signup': saved(true), ...rateLimit },
    ),
    '4XX': clientError,
  },
}

const getChallenge = {
  ...operation(
    'getChallenge',
    'Waitlist',
    'Get a challenge',
    'A challenge for the ALTCHA widget, version 3. Its solution can be sent for ten minutes, and is good for one address.',
  ),
  responses: {
    200: {
      description: 'The challenge.',
      headers: { 'Cache-Control': noStore },
      content: json('Challenge', { challenge: { value: schemas.challenge.examples[0] } }),
    },
    429: error(
      'This client has fetched too many challenges.',
      { limit: 'too many challenges, please try again in 30 seconds' },
      { 'Retry-After': retryAfter },
    ),
    '4XX': clientError,
    500: serverError,
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
      'Cache-Control': header('How long a copy is good.', { type: 'string', const: `public, max-age=${maxAge}` }, true),
      ETag: header('Identifies these bytes; send it back in If-None-Match.', text(80), true),
      Link: header('Related resources (RFC 8288).', text(2048, { examples: [link] }), true),
      ...(vary && { Vary: header('What the answer depends on.', { type: 'string', const: vary }, true) }),
    }
    const responses = {
      200: { description: 'The document.', headers, content },
      304: { description: 'The copy that the client holds is still current.', headers },
      '4XX': clientError,
      500: serverError,
    }
    return { get: { ...described, responses } }
  }

  return {
    openapi: '3.1.1',
    info: {
      title: `${service} API`,
      summary: 'Join an early-access waitlist.',
      description: `${description}\n\nA small JSON API without authentication. Every error is \`{"error": "one sentence"}\`. Paths carry no version.`,
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: service, url: base + paths.docs },
    },
    servers: [{ url: base, description: 'This installation.' }],
    security: [],
    tags: [
      { name: 'Waitlist', description: 'Joining the waitlist.' },
      { name: 'Health', description: 'Whether the service can take signups.' },
      { name: 'Discovery', description: 'Descriptions of this API for programs and people.' },
    ],
    externalDocs: { description: 'The documentation for people', url: base + paths.docs },
    paths: {
      [paths.waitlist]: {
        post: joinWaitlist,
        ...get(
          operation(
            'describeWaitlist',
            'Waitlist',
            'Describe this endpoint',
            'What the endpoint is, and where to find its description, documentation and health report.',
          ),
          json('SelfDescription', { description: { value: selfDescription(installation) } }),
          { maxAge: 300, link: descriptionLinks(base) },
        ),
      },
      ...(issuesChallenges && { [paths.challenge]: { get: getChallenge } }),
      [paths.health]: {
        get: {
          ...operation(
            'getHealth',
            'Health',
            'Report health',
            'Whether the process and its store can take signups. An outage of the upstream provider does not count.',
          ),
          responses: {
            200: {
              description: 'The service can take signups.',
              headers: { 'Cache-Control': noStore },
              content: json('HealthReport', {
                healthy: { value: { status: 'ok', service, description, time: '2026-11-20T12:00:00.000Z' } },
              }),
            },
            503: error('It cannot, or is shutting down.', { draining: 'the service is shutting down' }),
            '4XX': clientError,
            500: serverError,
          },
        },
      },
      [paths.catalog]: get(
        operation(
          'getApiCatalog',
          'Discovery',
          'Find this API',
          'The API catalog of this host (RFC 9727): a linkset of the API and its descriptions.',
        ),
        { [LINKSET]: { schema: schemaOf('Linkset'), examples: { catalog: { value: catalog(base) } } } },
      ),
      [paths.openapi]: get(
        operation('getOpenapi', 'Discovery', 'Describe this API for programs', 'The OpenAPI document.'),
        { 'application/json': { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } } },
      ),
      [paths.docs]: get(
        operation(
          'getDocumentation',
          'Discovery',
          'Describe this API for people',
          'An HTML page, or Markdown for clients whose `Accept` header prefers `text/markdown`.',
        ),
        {
          'text/html': { schema: { type: 'string', description: 'An HTML page.' } },
          'text/markdown': { schema: { type: 'string', description: 'The same in Markdown (RFC 7763).' } },
        },
        { vary: 'Accept' },
      ),
    },
    components: {
      schemas: {
        SignupRequest: schemas.signupRequest,
        SignupResult: schemas.signupResult,
        SelfDescription: schemas.selfDescription,
        HealthReport: schemas.healthReport,
        ...(issuesChallenges && { Challenge: schemas.challenge }),
        Linkset: schemas.linkset,
        Error: schemas.errorBody,
      },
    },
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
