import type { IncomingMessage, ServerResponse } from 'node:http'
import { closeAfter } from './closing.ts'
import {
  cutShort,
  emptyBody,
  encoded,
  malformedJson,
  notAnObject,
  notJson,
  notUtf8,
  type Refusal,
  tooLarge,
} from './errors.ts'
import { BODY_LIMIT } from './limits.ts'

/** A JSON object, or why there is none. */
export type JsonBody = { readonly object: object } | { readonly refusal: Refusal }

const no = (refusal: Refusal): JsonBody => ({ refusal })

/**
 * Reads a request body and checks encoding, media type, size, UTF-8 and JSON syntax, in that order (RFC 9110 §15.5.16,
 * §15.5.14; RFC 8259 §8.1). An empty body is a 400, whatever type it claims to have.
 *
 * At most `BODY_LIMIT` bytes are kept, and a refused body is not read to its end. A leading byte order mark is dropped.
 * If a member is repeated, the last one counts.
 */
export function readJson(request: IncomingMessage, response: ServerResponse): JsonBody | Promise<JsonBody> {
  const { headers } = request
  const length = headers['content-length']
  if (isEmpty(headers)) return no(emptyBody)
  const refusal = whyNotRead(headers)
  const isTooLarge = Number(length) > BODY_LIMIT
  if (isTooLarge || (length !== undefined && refusal !== null)) {
    // A short body is skipped, so that the connection can go on; a long one, or one that waits for a 100, is not.
    if (isTooLarge || headers.expect !== undefined) closeAfter(response)
    return no(refusal ?? tooLarge)
  }

  // RFC 9110 §10.1.1: the client is told to continue only after all header fields have been accepted.
  if (headers.expect !== undefined && request.httpVersion !== '1.0') response.writeContinue()

  return receive(request, response, refusal, parse)
}

/**
 * Reads a request body to its end and drops it. Null: it was read, whatever it was. The bounds are those of a signup's.
 */
export async function skipBody(request: IncomingMessage, response: ServerResponse): Promise<Refusal | null> {
  const { headers } = request
  if (isEmpty(headers)) return null
  if (Number(headers['content-length']) > BODY_LIMIT) {
    closeAfter(response)
    return tooLarge
  }
  if (headers.expect !== undefined && request.httpVersion !== '1.0') response.writeContinue()
  const body = await receive(request, response, null, () => ({ object: {} }))
  return 'refusal' in body ? body.refusal : null
}

/** RFC 9112 §6.3. Such a request has no stream that would end (`optimizeEmptyRequests`). */
function isEmpty(headers: IncomingMessage['headers']): boolean {
  const length = headers['content-length']
  return length === undefined ? headers['transfer-encoding'] === undefined : Number(length) === 0
}

function parse(bytes: Buffer): JsonBody {
  if (bytes.length === 0) return no(emptyBody)
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    return no(notUtf8)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return no(malformedJson)
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { object: value } : no(notAnObject)
}

/** Fatal, so that nothing is replaced silently. Drops a byte order mark. A `charset` parameter has no effect (§11). */
const utf8 = new TextDecoder('utf-8', { fatal: true })

function whyNotRead(headers: IncomingMessage['headers']): Refusal | null {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') return encoded
  return isJson(headers['content-type']) ? null : notJson
}

/** RFC 9110 §8.3.1: type and subtype are case-insensitive; parameters do not matter. */
function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

/** Reads the content. With a `refusal`, any content at all is refused with it. */
function receive(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal | null,
  read: (bytes: Buffer) => JsonBody,
): Promise<JsonBody> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    let isOver = false
    const finish = (body: JsonBody) => {
      isOver = true
      resolve(body)
    }
    // Later content is dropped.
    const stop = (why: Refusal) => {
      if (isOver) return
      closeAfter(response)
      finish(no(why))
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (refusal !== null) stop(refusal)
      else if (size > BODY_LIMIT) stop(tooLarge)
      else chunks.push(chunk)
    }
    const end = () => {
      if (!isOver) finish(read(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    }
    request
      .on('data', take)
      .on('end', end)
      .on('close', () => stop(cutShort))
  })
}
