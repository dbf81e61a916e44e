import { BODY_LIMIT } from '../limits.ts'
import { catalogLink, descriptionLinks, LINKSET, paths } from '../paths.ts'
import * as refusals from '../refusals.ts'
import { catalog } from './catalog.ts'
import { answers, header, type Installation, json, text } from './openapi-answers.ts'
import { errorBody, healthReport, linkset, selfDescription, signupRequest, signupResult } from './schemas.ts'

/**
 * The OpenAPI 3.1 document. It describes every endpoint, every answer, and the fields that a client can use; security
 * fields, CORS, and what Node adds (Date, Connection) are left out.
 */
export function openapi(installation: Installation) {
  const { base, service, description, version, limit, window, cookie } = installation
  const { noStore, cacheable, etag, links, rateLimit, error, anyError, failed, unchanged } = answers(installation)

  return {
    openapi: '3.1.1',
    info: {
      title: `${service} API`,
      summary: 'Join an early-access waitlist.',
      description: `${description}\n\nA small JSON API without authentication. Requests and answers are JSON in UTF-8, but for this documentation; every error is \`{"error": "one sentence"}\`. Paths carry no version.`,
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: service, url: `${base}${paths.docs}` },
    },
    servers: [{ url: base, description: 'This installation.' }],
    security: [],
    tags: [
      { name: 'Waitlist', description: 'Joining the waitlist.' },
      { name: 'Health', description: 'Whether the service is able to take signups.' },
      { name: 'Discovery', description: 'Descriptions of this API for programs and people.' },
    ],
    externalDocs: { description: 'Documentation for people', url: `${base}${paths.docs}` },
    paths: {
      [paths.waitlist]: {
        post: {
          operationId: 'joinWaitlist',
          tags: ['Waitlist'],
          summary: 'Join the waitlist',
          description:
            'Adds a person to the waitlist. A `200` means that the signup is stored durably.\n\nSending the same address again is safe: it answers `alreadyExisted: true`, changes nothing and starts no automation.\n\n' +
            `Each client may try ${limit} times at once; attempts come back one by one over ${window} seconds. Every attempt counts, also one with a mistake in it; only a 429 costs nothing. ` +
            'Only the first problem of a request is named.',
          requestBody: {
            required: true,
            description: `At most ${BODY_LIMIT} bytes of JSON.`,
            content: json('SignupRequest', {
              examples: { signup: { value: { name: 'Ada Lovelace', email: 'ada@example.com' } } },
            }),
          },
          responses: {
            200: {
              description: 'The address is on the waitlist.',
              headers: {
                'Cache-Control': noStore,
                'Set-Cookie': header(
                  'The membership cookie: this browser has signed up. It authorises nothing.',
                  text(400, { const: cookie }),
                  true,
                ),
                ...rateLimit,
              },
              content: json('SignupResult', {
                examples: {
                  new: { summary: 'A new address', value: signupResult.examples[0] },
                  known: { summary: 'An address that was listed before', value: signupResult.examples[1] },
                },
              }),
            },
            400: error(
              'The body is not a signup. The sentence names the first problem.',
              {
                name: 'name is required',
                email: 'email must be a valid email address',
                syntax: refusals.malformedJson.error,
              },
              rateLimit,
            ),
            413: error('The body is too large.', { size: refusals.tooLarge.error }, rateLimit),
            415: error(
              'The body is not `application/json`, or it is compressed.',
              { type: refusals.notJson.error },
              {
                Accept: header('What would be accepted (RFC 9110 §15.5.16).', text(100)),
                'Accept-Post': header('What would be accepted.', text(100)),
                'Accept-Encoding': header('What would be accepted, when the encoding was the problem.', text(100)),
                ...rateLimit,
              },
            ),
            429: error(
              'This client has tried too often.',
              { limit: refusals.tooManyAttempts(30).error },
              {
                'Retry-After': header(
                  'Seconds to wait; after that the next attempt is admitted.',
                  { type: 'integer', format: 'int32', minimum: 1, examples: [30] },
                  true,
                ),
                ...rateLimit,
              },
            ),
            500: error(
              'The service is temporarily unavailable. Try again; a signup that was stored nevertheless is not stored twice.',
              { unavailable: refusals.unavailable.error },
              rateLimit,
            ),
            502: error(
              'The upstream provider could not be reached.',
              { upstream: refusals.providerUnreachable.error },
              rateLimit,
            ),
            '4XX': anyError,
          },
        },
        get: {
          operationId: 'describeWaitlist',
          tags: ['Waitlist'],
          summary: 'Describe this endpoint',
          description: 'Says what the endpoint is, and where its description, documentation and health report are.',
          responses: {
            200: {
              description: 'The self-description.',
              headers: { 'Cache-Control': cacheable(300), ETag: etag, Link: links(descriptionLinks(base)) },
              content: json('SelfDescription', {
                examples: {
                  description: {
                    value: {
                      name: service,
                      description,
                      methods: ['GET', 'POST'],
                      'service-desc': `${base}${paths.openapi}`,
                      'service-doc': `${base}${paths.docs}`,
                      status: `${base}${paths.health}`,
                    },
                  },
                },
              }),
            },
            304: unchanged(300, { Link: links(descriptionLinks(base)) }),
            '4XX': anyError,
            500: failed,
          },
        },
      },
      [paths.health]: {
        get: {
          operationId: 'getHealth',
          tags: ['Health'],
          summary: 'Report health',
          description:
            'Whether the process and its store are able to take signups. An outage of the upstream provider does not count.',
          responses: {
            200: {
              description: 'Able to take signups.',
              headers: { 'Cache-Control': noStore },
              content: json('HealthReport', {
                examples: {
                  healthy: { value: { status: 'ok', service, description, time: '2026-11-20T12:00:00.000Z' } },
                },
              }),
            },
            503: error('Not able to take signups, or shutting down.', { draining: refusals.draining.error }),
            '4XX': anyError,
            500: failed,
          },
        },
      },
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
      [paths.openapi]: discovery('getOpenapi', 'Describe this API for programs', 'This document.', {
        'application/json': { schema: { type: 'object', description: 'An OpenAPI 3.1 document.' } },
      }),
      [paths.docs]: discovery(
        'getDocumentation',
        'Describe this API for people',
        'The documentation, made from this document: a page of HTML, or Markdown for a client whose `Accept` prefers `text/markdown`.',
        {
          'text/html': { schema: { type: 'string', description: 'A page of HTML.' } },
          'text/markdown': { schema: { type: 'string', description: 'The same as Markdown (RFC 7763).' } },
        },
        { Vary: header('The answer depends on this request field.', { type: 'string', const: 'Accept' }, true) },
      ),
    },
    components: {
      schemas: {
        SignupRequest: signupRequest,
        SignupResult: signupResult,
        SelfDescription: selfDescription,
        HealthReport: healthReport,
        Linkset: linkset,
        Error: errorBody,
      },
    },
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
          '4XX': anyError,
          500: failed,
        },
      },
    }
  }
}

export type OpenapiDocument = ReturnType<typeof openapi>
