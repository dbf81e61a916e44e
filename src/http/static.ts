import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Answer, Headers } from './response.ts'

/**
 * A route for a text that does not change while the process runs. Its entity tag is a hash of the bytes (RFC 9110 §8.8.3).
 * If-None-Match is a list or `*`, compared weakly (§13.1.2). There is no modification date, and ranges are ignored (§14.2).
 */
export function staticRoute(type: string, text: string, headers: Headers): (request: IncomingMessage) => Answer {
  const body = Buffer.from(text)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const whole = { status: 200, headers: { ...headers, etag, 'content-type': type }, body }
  // RFC 9110 §15.4.5: only the headers that a cache needs, and no content.
  const unchanged = { status: 304, headers: { ...headers, etag }, body: null }
  return request => {
    const tags = request.headers['if-none-match']?.split(',').map(tag => tag.trim().replace(/^W\//, '')) ?? []
    return tags.includes(etag) || tags.join() === '*' ? unchanged : whole
  }
}
