import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Answer, contentFields, fieldList } from './response.ts'

/** Bytes that do not change while the process runs, with their answers. */
export interface Document {
  readonly etag: string
  readonly whole: Answer
  /** RFC 9110 §15.4.5: only the fields that a cache needs, and no content. */
  readonly unchanged: Answer
}

/** Makes a document. The entity tag is strong: a hash of the bytes (RFC 9110 §8.8.3). */
export function document(type: string, text: string, fields: Readonly<Record<string, string>>): Document {
  const body = Buffer.from(text)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const list = fieldList({ ...fields, etag })
  return {
    etag,
    whole: { status: 200, fields: list.concat(contentFields(type, body.length)), body },
    unchanged: { status: 304, fields: list, body: null },
  }
}

/**
 * Serves a document to GET and HEAD. If-None-Match is a list or `*`, compared weakly (RFC 9110 §13.1.2). A document has no
 * modification date, and ranges are ignored (§14.2).
 */
export function serve({ headers }: IncomingMessage, { etag, whole, unchanged }: Document): Answer {
  const list = headers['if-none-match']
  const isHit = list?.trim() === '*' || list?.split(',').some(item => item.trim().replace(/^W\//, '') === etag)
  return isHit ? unchanged : whole
}
