import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { type Answer, contentFields, fieldList, readableAnywhere, withFields } from '../wire/answer.ts'
import { preconditionFailed, refuse } from '../wire/refusals.ts'

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
 * Serves a document to GET and HEAD, with the preconditions of RFC 9110 §13.2.2. There is no modification date, so
 * those about dates do not apply; ranges are ignored (§14.2).
 */
export function serve({ headers }: IncomingMessage, { etag, whole, unchanged }: Document): Answer {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  // §13.1.1: strong comparison, so a weak tag never matches.
  if (ifMatch !== undefined && !names(ifMatch, etag)) return withFields(refuse(preconditionFailed), readableAnywhere)
  if (ifNoneMatch !== undefined && names(ifNoneMatch.replaceAll('W/"', '"'), etag)) return unchanged
  return whole
}

/** Whether a list of entity tags contains this one. A tag may hold commas, but ours do not (base64url). */
function names(list: string, etag: string): boolean {
  return list.trim() === '*' || list.split(',').some(item => item.trim() === etag)
}
