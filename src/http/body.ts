import { BODY_LIMIT, REQUEST_TIMEOUT } from './limits.ts'
import { closeAfter, type Incoming, isHttp2, type Outgoing } from './protocol.ts'
import {
  cutShort,
  emptyBody,
  encoded,
  malformedJson,
  notAnObject,
  notJson,
  notUtf8,
  type Refusal,
  timedOut,
  tooLarge,
} from './refusals.ts'

/** A JSON object, or why there is none. */
export type JsonBody = { readonly object: object } | { readonly refusal: Refusal }

const no = (refusal: Refusal): JsonBody => ({ refusal })

/**
 * Reads a request body: encoding, media type, size, UTF-8, JSON syntax, in that order (RFC 9110 §15.5.16, §15.5.14;
 * RFC 8259 §8.1). Nothing is of the wrong type while there is nothing: an empty body is a 400, whatever it claims to be.
 *
 * At most `BODY_LIMIT` bytes are kept, and what is refused is not read to its end. A leading byte order mark is dropped.
 * Of members with the same name the last one counts.
 */
export function readJson(request: Incoming, response: Outgoing): JsonBody | Promise<JsonBody> {
  const { headers } = request
  const length = headers['content-length']
  if (length === undefined ? !mayHaveBody(request) : Number(length) === 0) return no(emptyBody)
  const refusal = whyNotRead(headers)
  const isTooLarge = Number(length) > BODY_LIMIT
  if (isTooLarge || (length !== undefined && refusal !== null)) {
    // A short body is read past, so that the connection can go on; a long one, or one that waits for a 100, is not.
    if (isTooLarge || headers.expect !== undefined) closeAfter(response)
    return no(refusal ?? tooLarge)
  }

  // RFC 9110 §10.1.1: only now, when nothing in the header fields speaks against it, is the client told to go on.
  if (headers.expect !== undefined && request.httpVersion !== '1.0') response.writeContinue()

  return receive(request, response, refusal)
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

/** Fatal, so that nothing is replaced silently. It drops a byte order mark. A `charset` parameter has no effect (§11). */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** RFC 9112 §6.3 for HTTP/1; in HTTP/2 a stream that is still open (RFC 9113 §8.1). */
const mayHaveBody = (request: Incoming): boolean =>
  isHttp2(request) ? !request.stream.endAfterHeaders : request.headers['transfer-encoding'] !== undefined

function whyNotRead(headers: Incoming['headers']): Refusal | null {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') return encoded
  return isJson(headers['content-type']) ? null : notJson
}

/** RFC 9110 §8.3.1: type and subtype without regard to case; parameters do not matter. */
function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

/** Reads what arrives. `refusal` speaks against content of any kind, as soon as there is some. */
function receive(request: Incoming, response: Outgoing, refusal: Refusal | null): Promise<JsonBody> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    let isOver = false
    const finish = (body: JsonBody) => {
      isOver = true
      clearTimeout(timer)
      resolve(body)
    }
    // What still arrives then is dropped.
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
      if (!isOver) finish(parse(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    }
    // Node's own `requestTimeout` covers HTTP/1 alone.
    const timer = isHttp2(request) ? setTimeout(stop, REQUEST_TIMEOUT, timedOut) : undefined
    request
      .on('data', take)
      .on('end', end)
      .on('close', () => stop(cutShort))
  })
}
