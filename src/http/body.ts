import { isUtf8 } from 'node:buffer'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { cutShort, emptyBody, encoded, malformedJson, notAnObject, notJson, notUtf8, tooLarge } from './errors.ts'
import { BODY_LIMIT, DRAIN_LIMIT } from './limits.ts'
import { type Answer, withHeaders } from './response.ts'

/** A JSON object, or why there is none. */
type JsonBody = { readonly object: object } | { readonly refusal: Answer }

const no = (refusal: Answer): JsonBody => ({ refusal })

/**
 * Reads a request body and checks encoding, media type, size, UTF-8 and JSON syntax, in that order (RFC 9110 §15.5.16,
 * §15.5.14; RFC 8259 §8.1). An empty body is a 400, whatever type it claims to have. At most `BODY_LIMIT` bytes are kept.
 * A leading byte order mark is dropped. If a member is repeated, the last one counts.
 */
export function readJson(request: IncomingMessage, response: ServerResponse): JsonBody | Promise<JsonBody> {
  const { headers } = request
  const length = headers['content-length']
  // RFC 9112 §6.3.
  if (length === undefined ? headers['transfer-encoding'] === undefined : Number(length) === 0) return no(emptyBody)

  const wrongType = refusalOfType(headers)
  const refusal = wrongType ?? (Number(length) > BODY_LIMIT ? tooLarge : null)
  const awaits100 = headers.expect !== undefined && request.httpVersion !== '1.0'
  if (refusal !== null && (awaits100 || Number(length) > DRAIN_LIMIT)) {
    return no(withHeaders(refusal, { connection: 'close' }))
  }
  // Node reads and drops the rest of a body that is refused, so the connection can go on.
  if (refusal !== null && length !== undefined) return no(refusal)
  // RFC 9110 §10.1.1: not before all headers have been accepted.
  if (awaits100) response.writeContinue()
  return receive(request, wrongType)
}

/** With `wrongType`, any content at all is refused with it. */
function receive(request: IncomingMessage, wrongType: Answer | null): Promise<JsonBody> {
  return new Promise(resolve => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (wrongType !== null) resolve(no(wrongType))
      else if (size > BODY_LIMIT) resolve(no(tooLarge))
      else chunks.push(chunk)
      if (size > DRAIN_LIMIT) request.destroy()
    })
    request.on('end', () => resolve(parse(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))))
    request.on('close', () => resolve(no(cutShort)))
  })
}

function parse(bytes: Buffer): JsonBody {
  if (bytes.length === 0) return no(emptyBody)
  if (!isUtf8(bytes)) return no(notUtf8)
  const text = bytes.toString()
  let value: unknown
  try {
    // Without a byte order mark. A `charset` parameter has no effect (RFC 8259 §11).
    value = JSON.parse(text.startsWith('\uFEFF') ? text.slice(1) : text)
  } catch {
    return no(malformedJson)
  }
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { object: value } : no(notAnObject)
}

function refusalOfType(headers: IncomingMessage['headers']): Answer | null {
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') return encoded
  // RFC 9110 §8.3.1: type and subtype are case-insensitive; parameters do not matter.
  const type = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase()
  return type === 'application/json' ? null : notJson
}
