import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { readableAnywhere } from './fields.ts'
import { preconditionFailed, refuse } from './refusals.ts'

/** Bytes that stay the same while the process runs, with the fields that they are served with. */
export interface Document {
  readonly body: Buffer
  readonly etag: string
  readonly fields: Readonly<Record<string, string>>
}

/** Makes a document. The entity tag is strong: a hash of the bytes (RFC 9110 §8.8.3). */
export function document(body: string, fields: Readonly<Record<string, string>>): Document {
  const bytes = Buffer.from(body)
  const etag = `"${createHash('sha256').update(bytes).digest('base64url')}"`
  return { body: bytes, etag, fields: { ...fields, etag } }
}

/**
 * Serves a document to GET and HEAD, with the preconditions of RFC 9110 §13.2.2. There is no modification date, so
 * those about dates do not apply, and ranges are ignored (§14.2).
 */
export function serve(request: FastifyRequest, reply: FastifyReply, { body, etag, fields }: Document): FastifyReply {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = request.headers
  // §13.1.1: strong comparison, so a weak tag never matches.
  if (ifMatch !== undefined && !names(ifMatch, etag)) {
    return refuse(reply.headers(readableAnywhere), preconditionFailed)
  }
  if (ifNoneMatch !== undefined && names(ifNoneMatch.replaceAll('W/"', '"'), etag)) {
    const { 'content-type': _, ...kept } = fields
    return reply.code(304).headers(kept).send()
  }
  return reply.headers(fields).send(body)
}

/** Whether a list of entity tags contains this one. A tag may hold commas, but ours do not (base64url). */
function names(list: string, etag: string): boolean {
  return list.trim() === '*' || list.split(',').some(item => item.trim() === etag)
}
