import * as refusals from '../refusals.ts'

/** What the document says about this installation. */
export interface Installation {
  /** The public origin, without a slash at the end. */
  readonly base: string
  readonly service: string
  readonly description: string
  readonly version: string
  /** Attempts and seconds. */
  readonly limit: number
  readonly window: number
  /** Whether answers say how much of the quota is left. */
  readonly publishQuota: boolean
  /** The value of Set-Cookie. */
  readonly cookie: string
}

/** Content of a named schema, as JSON. */
export const json = (schema: string, extra: object = {}) => ({
  'application/json': { schema: { $ref: `#/components/schemas/${schema}` }, ...extra },
})

export const header = (description: string, schema: object, required = false) => ({
  description,
  ...(required ? { required } : {}),
  schema,
})
export const text = (maxLength: number, more: object = {}) => ({ type: 'string', maxLength, ...more })

/** The pieces that the answers of several operations share. */
export function answers({ limit, window, publishQuota }: Installation) {
  const noStore = header('Never stored.', { type: 'string', const: 'no-store' }, true)
  const cacheable = (seconds: number) =>
    header('How long a copy may be used.', { type: 'string', const: `public, max-age=${seconds}` }, true)
  const etag = header('Identifies these bytes; send it back in If-None-Match.', text(80), true)
  const links = (value: string) => header('Related resources (RFC 8288).', text(2048, { examples: [value] }), true)

  const rateLimit: Record<string, object> = publishQuota
    ? {
        RateLimit: header(
          'What is left of the quota: `r` attempts; `t` seconds until there is one more.',
          text(100, { examples: [`"signup";r=${limit - 1};t=${Math.ceil(window / limit)}`] }),
        ),
        'RateLimit-Policy': header(
          'The quota: `q` attempts for each client, refilled evenly over `w` seconds.',
          text(100, { examples: [`"signup";q=${limit};w=${window}`] }),
        ),
      }
    : {}

  const error = (description: string, examples: Record<string, string>, headers: Record<string, object> = {}) => ({
    description,
    headers: { 'Cache-Control': noStore, ...headers },
    content: json('Error', {
      examples: Object.fromEntries(Object.entries(examples).map(([name, error]) => [name, { value: { error } }])),
    }),
  })
  const anyError = error('The request cannot be served as it is.', {
    methodNotAllowed: refusals.methodNotAllowed('GET').error,
  })
  const failed = error('The service is temporarily unavailable.', {
    unavailable: refusals.unavailable.error,
  })
  const unchanged = (seconds: number, more: Record<string, object> = {}) => ({
    description: 'The copy that the client has is still right.',
    headers: { ETag: etag, 'Cache-Control': cacheable(seconds), ...more },
  })

  return { noStore, cacheable, etag, links, rateLimit, error, anyError, failed, unchanged }
}
