import { type Challenge, SOLUTION_MAX } from '../../challenges/index.ts'
import { SOLUTION_FIELD, SOLUTION_PATTERN } from '../../challenges/route.ts'
import { sourceParameters } from '../../signup/contact.ts'
import { membershipCookie } from '../../signup/cookie.ts'
import { PARAMETER_MAX } from '../../signup/parse.ts'
import type { HttpParts, HttpSettings } from '../context.ts'
import * as refusals from '../errors.ts'
import { BODY_LIMIT, HEADER_BYTES } from '../limits.ts'
import type { Languages } from '../messages/languages.ts'
import { paths } from '../paths.ts'
import { catalog, catalogLink, descriptionLinks, LINKSET } from './catalog.ts'
import {
  challengeIssued,
  errorBody,
  healthReport,
  linkset,
  recordedResult,
  recordedResultOrAsked,
  type SelfDescription,
  SOLUTION_EXAMPLE,
  selfDescription,
  signupRequest,
  signupRequestWith,
  signupResult,
  signupResultOrAsked,
  signupResultOrHeld,
} from './schemas.ts'

/** What the document is made from. */
export interface Installation extends HttpSettings, Pick<HttpParts, 'version' | 'accepts' | 'links'> {
  /** The public origin, without a slash at the end. */
  readonly base: string
  readonly challenge: Pick<Challenge, 'member' | 'title' | 'widget' | 'issue'> | null
  readonly languages: Languages
}

/**
 * The OpenAPI 3.1 document. It describes every endpoint of the API, every answer, and the headers that a client can use. Left
 * out are `/`, the files of the form, and the headers for security and CORS and those that Node adds (Date, Connection).
 */
export function openapi(installation: Installation) {
  const { base, service, description, version, cookie, trackSources, disclosesMembership, holds, challenge } =
    installation
  const { limit, window } = installation.quota
  const solution = challenge?.member ?? null
  const issuesChallenges = challenge?.issue != null
  // A signup whose challenge cannot be verified is held. Only a verifier elsewhere can be away.
  const holdsSignups = challenge?.issue === null || (holds !== null && (holds.above !== null || holds.suspicious))
  const request = solution === null ? signupRequest : signupRequestWith(solution)
  const asks = installation.confirm
  const recorded = asks ? recordedResultOrAsked : recordedResult
  const told = asks ? signupResultOrAsked : holdsSignups ? signupResultOrHeld : signupResult
  const result = disclosesMembership ? told : recorded
  const tags = installation.messagesFile === null ? null : installation.languages.all.map(({ tag }) => tag)
  const parameters = [
    ...(solution === null ? [] : [solutionField(solution)]),
    ...(tags === null ? [] : [languageField(tags)]),
    ...(trackSources ? sourceFields : []),
  ]
  const { noStore, cacheable, etag, links, rateLimit, error, anyError, failed, unchanged, documentRefused } = answers(
    installation.quota,
  )
  /** Of every answer to a signup. */
  const ofSignup = { ...rateLimit, ...(tags !== null && languageChosen(tags)) }

  return {
    openapi: '3.1.1',
    info: {
      title: `${service} API`,
      summary: 'Join an early-access waitlist.',
      description: `${description}\n\nA small JSON API without authentication. ${!installation.confirm ? 'Apart from this documentation' : 'Apart from this documentation and the pages behind links in mails'}, requests and answers are JSON; every error is \`{"error": "one sentence"}\`. Paths carry no version.`,
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: service, url: `${base}${paths.docs}` },
    },
    servers: [{ url: base, description: 'This installation.' }],
    security: [],
    tags: [
      { name: 'Waitlist', description: 'Joining the waitlist.' },
      { name: 'Health', description: 'Whether the service can take signups.' },
      ...(!installation.confirm
        ? []
        : [{ name: 'Links', description: 'The pages for people that the links in mails lead to.' }]),
      { name: 'Discovery', description: 'Descriptions of this API for programs and people.' },
    ],
    externalDocs: { description: 'The documentation for people', url: `${base}${paths.docs}` },
    paths: {
      [paths.waitlist]: {
        post: {
          operationId: 'joinWaitlist',
          tags: ['Waitlist'],
          summary: 'Join the waitlist',
          description:
            'Adds a person to the waitlist. A `200` means that the signup is stored durably.\n\n' +
            (asks
              ? 'A new address is sent a mail with a link, and is on the waitlist once its reader has confirmed it.\n\n'
              : '') +
            'Sending the same address again is safe: ' +
            (disclosesMembership
              ? `the answer says \`alreadyExisted: true\`${asks ? ' once it is confirmed' : ''}`
              : 'the answer is the same') +
            ', nothing changes, and no automation starts.\n\n' +
            `Each client has a quota of ${limit} ${limit === 1 ? 'attempt' : 'attempts'}, refilled evenly over ${window} seconds. Every attempt counts, even one with a mistake in it, unless it is answered with 429. ` +
            'An error names only the first problem of a request.' +
            (tags === null ? '' : translated(tags)) +
            (trackSources ? SOURCES : '') +
            (solution === null ? '' : challengeSolved(solution)),
          ...(parameters.length > 0 && { parameters }),
          requestBody: {
            required: true,
            description: `At most ${BODY_LIMIT} bytes of JSON.`,
            content: json('SignupRequest', { signup: { value: request.examples[0] } }),
          },
          responses: {
            200: {
              description: !disclosesMembership
                ? 'The signup is recorded.'
                : `The address is on the waitlist${asks ? ', or waits for its confirmation' : ''}${holdsSignups ? ', or the signup is held: stored, until the operator lets it in' : ''}.`,
              headers: {
                'Cache-Control': noStore,
                'Set-Cookie': header(
                  'The membership cookie. It says that this browser has signed up, and grants no access.',
                  text(400, { const: membershipCookie(cookie) }),
                  true,
                ),
                ...ofSignup,
              },
              content: json(
                'SignupResult',
                disclosesMembership
                  ? {
                      new: { summary: 'A new address', value: told.examples[0] },
                      known: { summary: 'An address that is already listed', value: signupResult.examples[1] },
                      ...(holdsSignups && {
                        held: { summary: 'A new address whose signup is held', value: signupResultOrHeld.examples[2] },
                      }),
                    }
                  : { recorded: { summary: 'Any address', value: recorded.examples[0] } },
              ),
            },
            400: error(
              'The body is not a signup. The sentence names the first problem.',
              {
                name: 'name is required',
                email: 'email must be a valid email address',
                ...(installation.accepts !== null && { domain: refusals.domainNotAccepted.error }),
                syntax: refusals.malformedJson.error,
                ...(solution !== null && {
                  unsolved: refusals.challengeMissing.error,
                  failed: refusals.challengeFailed.error,
                  expired: refusals.challengeExpired.error,
                  spent: refusals.challengeSpent.error,
                }),
              },
              ofSignup,
            ),
            413: error('The body is too large.', { size: refusals.tooLarge.error }, ofSignup),
            415: error(
              'The body is not `application/json`, or it is compressed.',
              { type: refusals.notJson.error },
              {
                Accept: header('The media type that is accepted (RFC 9110 §15.5.16).', text(100)),
                'Accept-Post': header('The same, for POST alone.', text(100)),
                'Accept-Encoding': header('The encoding that is accepted, if the encoding was the problem.', text(100)),
                ...ofSignup,
              },
            ),
            429: error(
              'This client has tried too often.',
              { limit: refusals.tooManyAttempts(30).error },
              { 'Retry-After': retryAfter('Seconds until the next attempt is admitted.', 30), ...ofSignup },
            ),
            500: error(
              'The service is temporarily unavailable. Unless `Waitlist-Signup` says that the signup is saved, try again: a signup that was stored after all is not stored twice.',
              { unavailable: refusals.unavailable.error, saved: refusals.savedForLater.error },
              { 'Waitlist-Signup': saved(false), ...ofSignup },
            ),
            // Where membership is not disclosed, nobody waits for the provider.
            ...(disclosesMembership && {
              502: error(
                'The upstream provider could not be reached. The signup is saved and will be completed.',
                { upstream: refusals.providerUnreachable.error },
                { 'Waitlist-Signup': saved(true), ...ofSignup },
              ),
            }),
            '4XX': anyError,
          },
        },
        get: {
          operationId: 'describeWaitlist',
          tags: ['Waitlist'],
          summary: 'Describe this endpoint',
          description: 'Says what the endpoint is and where to find its description, documentation and health report.',
          responses: {
            200: {
              description: 'The self-description.',
              headers: { 'Cache-Control': cacheable(300), ETag: etag, Link: links(descriptionLinks(base)) },
              content: json('SelfDescription', { description: { value: descriptionOf(installation) } }),
            },
            304: unchanged(300, { Link: links(descriptionLinks(base)) }),
            ...documentRefused,
          },
        },
      },
      [paths.health]: {
        get: {
          operationId: 'getHealth',
          tags: ['Health'],
          summary: 'Report health',
          description:
            'Says whether the process and its store can take signups. An outage of the upstream provider does not count.',
          responses: {
            200: {
              description: 'The service can take signups.',
              headers: { 'Cache-Control': noStore },
              content: json('HealthReport', {
                healthy: { value: { status: 'ok', service, description, time: '2026-11-20T12:00:00.000Z' } },
              }),
            },
            503: error('The service cannot take signups, or is shutting down.', { draining: refusals.draining.error }),
            '4XX': anyError,
            500: failed,
          },
        },
      },
      ...(issuesChallenges && { [paths.challenge]: challengeCall() }),
      ...(installation.confirm && linkCalls()),
      [paths.catalog]: discovery(
        'getApiCatalog',
        'Find this API',
        'The API catalog of this host (RFC 9727): a linkset of the API and its descriptions.',
        {
          [LINKSET]: {
            schema: { $ref: '#/components/schemas/Linkset' },
            examples: { catalog: { value: catalog(base) } },
          },
        },
      ),
      [paths.openapi]: discovery('getOpenapi', 'Describe this API for programs', 'The OpenAPI document itself.', {
        'application/json': { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } },
      }),
      [paths.docs]: discovery(
        'getDocumentation',
        'Describe this API for people',
        'The documentation, generated from the OpenAPI document: an HTML page, or Markdown for clients whose `Accept` header prefers `text/markdown`.',
        {
          'text/html': { schema: { type: 'string', description: 'An HTML page.' } },
          'text/markdown': { schema: { type: 'string', description: 'The same in Markdown (RFC 7763).' } },
        },
        { Vary: header('The request header that the answer depends on.', { type: 'string', const: 'Accept' }, true) },
      ),
    },
    components: {
      schemas: {
        SignupRequest: request,
        SignupResult: result,
        SelfDescription: selfDescription,
        HealthReport: healthReport,
        ...(issuesChallenges && { Challenge: challengeIssued }),
        Linkset: linkset,
        Error: errorBody,
      },
    },
  }

  function challengeCall() {
    return {
      get: {
        operationId: 'getChallenge',
        tags: ['Waitlist'],
        summary: 'Get a challenge',
        description:
          'A challenge for the ALTCHA widget, version 3. Its solution can be sent for ten minutes, and is good for one address.',
        responses: {
          200: {
            description: 'The challenge.',
            headers: { 'Cache-Control': noStore },
            content: json('Challenge', { challenge: { value: challengeIssued.examples[0] } }),
          },
          429: error(
            'This client has fetched too many challenges.',
            { limit: refusals.tooManyChallenges(30).error },
            { 'Retry-After': retryAfter('Seconds until the client may fetch one more.', 30) },
          ),
          '4XX': anyError,
          500: failed,
        },
      },
    }
  }

  function linkCalls() {
    const page = (description: string, headers: Record<string, object> = {}) => ({
      description,
      headers: { 'Cache-Control': noStore, ...(tags !== null && languageChosen(tags)), ...headers },
      content: { 'text/html': { schema: { type: 'string', description: 'An HTML page.' } } },
    })
    const expired = { 410: page('The link has expired, or the contact was deleted.') }
    const limited = {
      429: page('The link was used too often.', {
        'Retry-After': retryAfter('Seconds until the link may be used again.', 1),
      }),
    }
    const call = (operationId: string, summary: string, description: string, success: string, more: object) => ({
      operationId,
      tags: ['Links'],
      summary,
      description,
      parameters: [tokenField, ...(tags === null ? [] : [languageField(tags)])],
      responses: {
        200: page(success),
        404: page('The link is not valid.'),
        ...more,
        '4XX': anyError,
        500: page('The service is temporarily unavailable. The link stays good.'),
      },
    })
    const followed = 'It changes nothing, so that programs which follow the links in mails change nothing.'
    return {
      [paths.confirm]: {
        get: call(
          'showConfirmation',
          'Ask for a confirmation',
          `A page with a button that sends the same address with \`POST\`. ${followed}`,
          'The page.',
          expired,
        ),
        post: call(
          'confirm',
          'Confirm an address',
          'The contact goes on as a new one does. It may be sent again. A body is ignored.',
          'The address is confirmed.',
          { ...expired, ...limited },
        ),
      },
      [paths.unsubscribe]: {
        get: call(
          'showUnsubscription',
          'Ask whether to unsubscribe',
          `A page with a button that sends the same address with \`POST\`. ${followed}`,
          'The page.',
          {},
        ),
        post: call(
          'unsubscribe',
          'Unsubscribe',
          'Deletes the contact. It may be sent again. Mail programs send it in one click (RFC 8058); a body is ignored.',
          'The contact is deleted.',
          limited,
        ),
      },
    }
  }

  function discovery(operationId: string, summary: string, description: string, content: object, headers = {}) {
    return {
      get: {
        operationId,
        tags: ['Discovery'],
        summary,
        description,
        responses: {
          200: {
            description: 'The document.',
            headers: { 'Cache-Control': cacheable(3600), ETag: etag, Link: links(catalogLink(base)), ...headers },
            content,
          },
          304: unchanged(3600, { Link: links(catalogLink(base)), ...headers }),
          ...documentRefused,
        },
      },
    }
  }
}

export type OpenapiDocument = ReturnType<typeof openapi>

/** What the API says of itself. */
export const descriptionOf = ({ base, service, description }: Installation): SelfDescription => ({
  name: service,
  description,
  methods: ['GET', 'POST'],
  'service-desc': base + paths.openapi,
  'service-doc': base + paths.docs,
  status: base + paths.health,
})

/** Content of a named schema, as JSON. */
const json = (schema: string, examples: Record<string, { readonly summary?: string; readonly value: unknown }>) => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, examples },
})

const header = (description: string, schema: object, required = false) => ({ description, required, schema })

const retryAfter = (description: string, example: number) =>
  header(description, { type: 'integer', format: 'int32', minimum: 1, examples: [example] }, true)

const saved = (always: boolean) =>
  header(
    '`saved`: the signup is stored and will be completed, so it need not be sent again.',
    { type: 'string', const: 'saved' },
    always,
  )

const SOURCES =
  '\n\nThe query may say where the person came from. It is kept with a new contact: of each parameter the first ' +
  `${PARAMETER_MAX} characters, without control characters and surrounding white space; if it is repeated, the first one. ` +
  'No value is a reason to refuse a signup.'

const challengeSolved = (member: string): string =>
  `\n\nA challenge must be solved first. Its solution is sent as \`${member}\`, or in the header \`${SOLUTION_FIELD}\`. ` +
  'It is good for one address, with which the signup may be repeated until the solution expires.'

const solutionField = (member: string) => ({
  name: SOLUTION_FIELD,
  in: 'header' as const,
  required: false,
  description: `The solution of the challenge, for pages that cannot send \`${member}\`.`,
  schema: {
    type: 'string',
    maxLength: SOLUTION_MAX,
    pattern: SOLUTION_PATTERN,
    examples: [SOLUTION_EXAMPLE],
  },
})

const translated = (tags: readonly string[]): string =>
  `\n\nSentences for visitors are in the language that \`Accept-Language\` asks for (RFC 4647 §3.4), if it is one of ${tags.map(tag => `\`${tag}\``).join(', ')}; one that is not translated is in English. So is every sentence that only the author of a page meets.`

const languageField = (tags: readonly string[]) => ({
  name: 'Accept-Language',
  in: 'header' as const,
  required: false,
  description: 'The languages that the visitor reads, as browsers send them (RFC 9110 §12.5.4).',
  schema: { type: 'string', maxLength: HEADER_BYTES, examples: [`${tags.at(-1)}, en;q=0.5`] },
})

const tokenField = {
  name: 'token',
  in: 'query' as const,
  required: true,
  description: 'What the link in the mail has.',
  schema: { type: 'string', maxLength: HEADER_BYTES, examples: ['AZgdTzwAfE6dCj8cK01ebw'] },
}

/** Of an answer in one of several languages. */
const languageChosen = (tags: readonly string[]) => ({
  'Content-Language': header('The language of the sentence.', { type: 'string', enum: tags }),
  Vary: header('The request headers that the answer depends on.', text(100, { pattern: 'Accept-Language' })),
})

/** The meaning of each parameter, and an example. */
const sources: Record<(typeof sourceParameters)[number], readonly [description: string, example: string]> = {
  utm_source: ['The site, newsletter or advertiser that the person came from.', 'newsletter'],
  utm_medium: ['The kind of link.', 'email'],
  utm_campaign: ['The campaign that the link belongs to.', 'launch'],
  utm_term: ['The search term of a paid link.', 'early access'],
  utm_content: ['Which of several links or advertisements it was.', 'footer'],
  ref: ['Who or what referred the person.', 'ada'],
}

/** A long value is no mistake. Its only bound is that of the head of a request. */
const sourceFields = sourceParameters.map(name => {
  const [description, example] = sources[name]
  const schema = { type: 'string', maxLength: HEADER_BYTES, examples: [example] } as const
  return { name, in: 'query' as const, required: false, description, schema }
})

const text = (maxLength: number, more: object = {}) => ({ type: 'string', maxLength, ...more })

/** Parts that several operations share. */
function answers({ limit, window }: HttpSettings['quota']) {
  const noStore = header('No cache may store the answer.', { type: 'string', const: 'no-store' }, true)
  const cacheable = (seconds: number) =>
    header('How long a copy may be used.', { type: 'string', const: `public, max-age=${seconds}` }, true)
  const etag = header('Identifies these bytes; send it back in If-None-Match.', text(80), true)
  const links = (value: string) => header('Related resources (RFC 8288).', text(2048, { examples: [value] }), true)

  const rateLimit = {
    RateLimit: header(
      'What is left of the quota: `r` attempts, with `t` seconds until there is one more.',
      text(100, { examples: [`"signup";r=${limit - 1};t=${Math.ceil(window / limit)}`] }),
    ),
    'RateLimit-Policy': header(
      'The quota: `q` attempts for each client, refilled evenly over `w` seconds.',
      text(100, { examples: [`"signup";q=${limit};w=${window}`] }),
    ),
  }

  const error = (description: string, examples: Record<string, string>, headers: Record<string, object> = {}) => ({
    description,
    headers: { 'Cache-Control': noStore, ...headers },
    content: json(
      'Error',
      Object.fromEntries(Object.entries(examples).map(([name, error]) => [name, { value: { error } }])),
    ),
  })
  const notAllowed = { methodNotAllowed: refusals.methodNotAllowed('GET').error }
  const anyError = error('The request cannot be served as it is.', notAllowed)
  const failed = error('The service is temporarily unavailable.', { unavailable: refusals.unavailable.error })
  const unchanged = (seconds: number, more: Record<string, object> = {}) => ({
    description: 'The copy that the client holds is still current.',
    headers: { ETag: etag, 'Cache-Control': cacheable(seconds), ...more },
  })

  const documentRefused = { '4XX': anyError, 500: failed }

  return { noStore, cacheable, etag, links, rateLimit, error, anyError, failed, unchanged, documentRefused }
}
