import type { ServerResponse } from 'node:http'
import type { Outgoing } from './protocol.ts'

/** Response fields as Node writes them fastest: name, value, name, value, … Names are lower case, as in HTTP/2. */
export type FieldList = readonly string[]

/** All that a request is answered with. Date, and what belongs to the connection, is added by Node. */
export interface Answer {
  readonly status: number
  readonly fields: FieldList
  /** Null where a status has no content (204, 304) or the content is empty. */
  readonly body: string | Buffer | null
  /** Node copies such text as it is; any other it must encode. */
  readonly isAscii?: boolean
}

export const fieldList = (fields: Readonly<Record<string, string>>): FieldList => Object.entries(fields).flat()

/** The fields of a body, whose length HTTP/2 would not tell by itself (RFC 9110 §8.6). */
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

/** Sends an answer. To HEAD, Node sends the fields alone (RFC 9110 §9.3.2). */
export function send(response: Outgoing, { status, fields, body, isAscii }: Answer): void {
  const raw = response as ServerResponse
  raw.writeHead(status, fields as string[])
  if (body === null) raw.end()
  else raw.end(body, isAscii === true ? 'latin1' : 'utf8')
}
