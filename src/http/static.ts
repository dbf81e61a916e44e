import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Answer, Headers } from './response.ts'

/** Bytes that do not change while the process runs, with their answers. */
interface Document {
  readonly etag: string
  readonly whole: Answer
  /** RFC 9110 §15.4.5: only the headers that a cache needs, and no content. */
  readonly unchanged: Answer
}

/** The entity tag is strong: a hash of the bytes (RFC 9110 §8.8.3). */
export function document(type: string, text: string, headers: Headers): Document {
  const body = Buffer.from(text)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  return {
    etag,
    whole: { status: 200, headers: { ...headers, etag, 'content-type': type }, body },
    unchanged: { status: 304, headers: { ...headers, etag }, body: null },
  }
}

/**
 * Serves a document to GET and HEAD. If-None-Match is a list or `*`, compared weakly (RFC 9110 §13.1.2). A document has no
 * modification date, and ranges are ignored (§14.2).
 */
export function serve({ headers }: IncomingMessage, { etag, whole, unchanged }: Document): Answer {
  const list = headers['if-none-match']
  if (list === undefined) return whole
  const isHit = list.trim() === '*' || list.split(',').some(item => item.trim().replace(/^W\//, '') === etag)
  return isHit ? unchanged : whole
}
