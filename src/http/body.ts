import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { BODY_LIMIT, REQUEST_TIMEOUT } from './limits.ts'
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
} from './refusals.ts'

export type Incoming = IncomingMessage | Http2ServerRequest
export type Outgoing = ServerResponse | Http2ServerResponse

/** A JSON object, or why there is none. */
export type JsonBody = { readonly object: object } | { readonly refusal: Refusal }

const no = (refusal: Refusal): JsonBody => ({ refusal })

/**
 * Reads a request body: media type, size, UTF-8, JSON syntax, in that order (RFC 9110 §15.5.16, §15.5.14; RFC 8259 §8.1).
 *
 * At most `BODY_LIMIT` bytes are kept; what is longer is not read to its end. A leading byte order mark is dropped.
 * Of members with the same name the last one counts.
 */
export async function readJson(request: Incoming, response: Outgoing): Promise<JsonBody> {
  const { headers } = request
  const length = headers['content-length']
  if (length === '0' || (length === undefined && !mayHaveBody(request))) return no(emptyBody)
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') return no(encoded)
  if (length !== undefined && !isJson(headers['content-type'])) return no(notJson)
  if (Number(length) > BODY_LIMIT) return stopReading(request, response)

  // RFC 9110 §10.1.1: only now, when nothing in the header fields speaks against it, is the client told to go on.
  if (headers.expect !== undefined) response.writeContinue()

  const bytes = await readBytes(request)
  if (bytes === 'too large') return stopReading(request, response)
  if (bytes === 'cut short') return no(cutShort)
  if (bytes.length === 0) return no(emptyBody)
  if (!isJson(headers['content-type'])) return no(notJson)

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

/** The bytes of a JSON body. Text would make Fastify add a `charset`, which JSON does not have (RFC 8259 §11). */
export const json = (value: object): Buffer => Buffer.from(JSON.stringify(value))

/** Fatal, so that nothing is replaced silently. It drops a byte order mark. A `charset` parameter has no effect (§11). */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** RFC 9112 §6.3 for HTTP/1; in HTTP/2 a stream that is still open (RFC 9113 §8.1). */
function mayHaveBody(request: Incoming): boolean {
  return request.httpVersionMajor === 1
    ? request.headers['transfer-encoding'] !== undefined
    : !(request as Http2ServerRequest).stream.endAfterHeaders
}

/** RFC 9110 §8.3.1: type and subtype without regard to case; parameters do not matter. */
function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() === 'application/json'
}

function readBytes(request: Incoming): Promise<Buffer | 'too large' | 'cut short'> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    const finish = (result: Buffer | 'too large' | 'cut short') => {
      clearTimeout(timer)
      request.off('data', take).off('end', end).off('error', abort).off('close', abort)
      resolve(result)
    }
    const take = (chunk: Buffer) => {
      size += chunk.length
      if (size > BODY_LIMIT) finish('too large')
      else chunks.push(chunk)
    }
    const end = () => finish(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))
    const abort = () => finish('cut short')
    // Node's own `requestTimeout` covers HTTP/1 alone.
    const timer = request.httpVersionMajor === 1 ? undefined : setTimeout(abort, REQUEST_TIMEOUT)
    request.on('data', take).on('end', end).on('error', abort).on('close', abort)
  })
}

/** RFC 9110 §15.5.14: refused, and the connection closes, so that the rest need not be read. HTTP/2 closes the stream. */
function stopReading(request: Incoming, response: Outgoing): JsonBody {
  request.pause()
  if (request.httpVersionMajor === 1) response.setHeader('connection', 'close')
  return no(tooLarge)
}
