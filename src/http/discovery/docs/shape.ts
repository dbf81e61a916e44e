import type { OpenapiDocument } from '../openapi.ts'

/** The part of OpenAPI 3.1 that our own document uses and the documentation reads. */

export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly const?: unknown
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly examples?: readonly unknown[]
  /** The rules for the trimmed value, if the schema itself describes the value as sent. */
  readonly 'x-after-trimming'?: { readonly format?: string; readonly minLength?: number; readonly maxLength?: number }
}

export interface Media {
  readonly schema: Schema
  readonly examples?: Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>
}

export interface HeaderField {
  readonly description: string
  readonly required?: boolean
  readonly schema: Schema
}

export interface Answer {
  readonly description: string
  readonly headers?: Readonly<Record<string, HeaderField>>
  readonly content?: Readonly<Record<string, Media>>
}

export interface Parameter {
  readonly name: string
  readonly in: 'query' | 'header'
  readonly required: boolean
  readonly description: string
  readonly schema: Schema
}

export interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly description: string; readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, Answer>>
}

/** One method of one path. */
export interface Call {
  readonly method: string
  readonly path: string
  readonly operation: Operation
}

/** Every call of the API, in the order of the document. */
export function callsOf(api: OpenapiDocument): readonly Call[] {
  const paths = api.paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

/** The first form of a body; undefined without a body. */
export function firstMedia(content: Answer['content']): { type: string; media: Media } | undefined {
  const [first] = Object.entries(content ?? {})
  return first && { type: first[0], media: first[1] }
}
