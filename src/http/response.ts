import type { ServerResponse } from 'node:http'
import { awaitReader } from './connections.ts'

/** Response fields in the form that Node writes fastest: name, value, name, value, … Names are lower case. */
export type FieldList = readonly string[]

/** A whole answer, except for Date and the connection's fields, which Node adds. */
export interface Answer {
  readonly status: number
  readonly fields: FieldList
  /** Null if the status has no content (204, 304) or the content is empty. */
  readonly body: string | Buffer | null
  /** Node copies ASCII text as it is; any other text must be encoded. */
  readonly isAscii?: boolean
}

export const fieldList = (fields: Readonly<Record<string, string>>): FieldList => Object.entries(fields).flat()

/** The fields of a body. Without its length Node would send it in chunks. */
export const contentFields = (type: string, bytes: number): FieldList => [
  'content-type',
  type,
  'content-length',
  String(bytes),
]

/** A JSON answer. The media type has no `charset` parameter (RFC 8259 §11). */
export function jsonAnswer(status: number, fields: FieldList, value: object): Answer {
  const body = JSON.stringify(value)
  const bytes = Buffer.byteLength(body)
  const isAscii = bytes === body.length
  return { status, fields: [...fields, ...contentFields('application/json', bytes)], body, isAscii }
}

export const withFields = (answer: Answer, fields: FieldList): Answer =>
  fields.length === 0 ? answer : { ...answer, fields: [...fields, ...answer.fields] }

/** Sends an answer. To a HEAD request Node sends only the fields (RFC 9110 §9.3.2). */
export function send(response: ServerResponse, { status, fields, body, isAscii }: Answer): void {
  response.writeHead(status, fields as string[])
  if (body === null) response.end()
  else response.end(body, isAscii === true ? 'latin1' : 'utf8')
  awaitReader(response)
}

// Fields that many answers share.

type Fields = Readonly<Record<string, string>>

/** OWASP REST Security cheat sheet, "Security Headers". The HTML page replaces some of them. */
export const securityFields: Fields = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
}

const anyOrigin: Fields = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Link, ETag',
}

/** For public, read-only resources: any page may read them, without credentials. */
export const publicFields: Fields = { ...securityFields, ...anyOrigin, 'cross-origin-resource-policy': 'cross-origin' }

/** The same for their errors. */
export const readableAnywhere = fieldList(anyOrigin)

/** RFC 6797 §6.1. Only sent over TLS (§7.2). */
export const strictTransportSecurity = fieldList({ 'strict-transport-security': 'max-age=31536000' })
