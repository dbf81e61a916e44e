import type { OpenapiDocument } from '../openapi.ts'
import { blocks, code, definition, definitions, escaped, example, prose } from './commonmark.ts'
import { requestSamples } from './examples.ts'
import {
  type Answer,
  type Call,
  firstMedia,
  type HeaderField,
  type Operation,
  type Parameter,
  type Schema,
} from './shape.ts'

/** One endpoint, in CommonMark: what to send, what comes back, what can go wrong. */
export function endpoint(api: OpenapiDocument, base: string, call: Call): string {
  const { summary, parameters = [], requestBody, responses } = call.operation
  const { 200: success, ...others } = responses
  const refusals = Object.entries(others).sort(byStatus)
  const refused = refusals.find(([status]) => status.startsWith('4'))
  return blocks(
    `### ${escaped(summary)}`,
    request(api, call),
    // Nobody but its reader has what a link in a mail has.
    parameters.some(({ required }) => required) ? undefined : example('Request', ...requestSamples(base, call)),
    success && successful(api, success),
    definitions('Other responses', ['In quotes: examples of what `error` says.', ...refusals.map(refusal)]),
    definitions('Headers of other responses', headerList(furtherHeaders(others, success), statusesOf)),
    requestBody && refused && rawAnswer(...refused),
  )
}

/** What may be sent, and what it does. */
function request(api: OpenapiDocument, { method, path, operation }: Call): string {
  const { description, requestBody } = operation
  const { schema } = firstMedia(requestBody?.content)?.media ?? {}
  return blocks(
    code(`${method} ${path}`),
    prose(description),
    schema && definitions('Request fields', members(api, schema, '**required**')),
    requestBody && prose(requestBody.description),
    parametersIn('Request headers', operation, 'header'),
    parametersIn('Query parameters', operation, 'query'),
  )
}

function successful(api: OpenapiDocument, success: Answer): string {
  const media = firstMedia(success.content)?.media
  const types = Object.keys(success.content ?? {}).map(code)
  return blocks(
    `Success is \`200\` with ${types.join(' or ')}. ${prose(success.description)}`,
    media && definitions('Response fields', members(api, media.schema, 'always')),
    definitions('Response headers', headers(success.headers)),
    ...answerExamples('200', success),
  )
}

/** `4XX` comes after the 4xx that are named. */
const byStatus = ([one]: readonly [string, Answer], [other]: readonly [string, Answer]) => (one < other ? -1 : 1)

/** One example for each body in the document. */
export const answerExamples = (status: string, { content }: Answer): string[] =>
  Object.values(firstMedia(content)?.media.examples ?? {}).map(({ summary = 'Response', value }) =>
    example(`${code(status)} ${escaped(summary)}`, { language: 'json', code: pretty(value) }),
  )

/** An answer as it is transmitted, with the headers that are always sent. */
export function rawAnswer(status: string, answer: Answer): string {
  const { type, media } = firstMedia(answer.content) ?? {}
  const fields = Object.entries(answer.headers ?? {})
    .filter(([, { required }]) => required)
    .map(([name, { schema }]) => `${name}: ${schema.const ?? schema.examples?.[0] ?? '…'}\n`)
  const body = pretty(Object.values(media?.examples ?? {})[0]?.value)
  const message = `HTTP/1.1 ${status}\nContent-Type: ${type}\n${fields.join('')}\n${body}`
  return example(`${code(status)} Response`, { language: 'http', code: message })
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2)

/** A status, its meaning, and the sentences of its examples. */
function refusal([status, { description, content }]: [string, Answer]): string {
  const examples = Object.values(firstMedia(content)?.media.examples ?? {})
  const sentences = examples.map(({ value }) => `- “${escaped((value as { error: string }).error)}”`)
  return definition(status, [], prose(description), sentences.join('\n'))
}

/** One entry for each member of a schema. Those of nested objects are named by their path. */
export function members(api: OpenapiDocument, schema: Schema, required: string): string[] {
  const described = new Map<Schema, string>()
  const entries = (object: Schema, prefix: string): string[] =>
    Object.entries(object.properties ?? {}).flatMap(([name, member]) => {
      const path = prefix + name
      const remarks = constraints(member)
        .map(escaped)
        .concat(object.required?.includes(name) ? required : [])
      const inner = member.properties === undefined ? member.items : member
      const same = inner && described.get(inner)
      const likeAnother = same === undefined ? '' : ` Entries as in ${code(same)}.`
      const own = definition(path, remarks, prose(member.description ?? '') + likeAnother)
      if (inner?.properties === undefined || same !== undefined) return own
      described.set(inner, path)
      return [own, ...entries(inner, `${path}${inner === member ? '' : '[]'}.`)]
    })
  const named = schema.$ref?.split('/').at(-1)
  return entries(named === undefined ? schema : (api.components.schemas as Record<string, Schema>)[named]!, '')
}

/** One entry for each parameter in this place. */
function parametersIn(title: string, { parameters = [] }: Operation, place: Parameter['in']): string | undefined {
  const there = parameters.filter(each => each.in === place)
  const entries = there.map(({ name, required, description, schema }) => {
    const remarks = [schema.type ?? 'any', ...(required ? ['**required**'] : [])]
    return definition(name, remarks, prose(description), `Example: ${code(String(schema.examples?.[0]))}`)
  })
  return definitions(there.some(({ required }) => required) ? title : `${title}, all optional`, entries)
}

/** Type and limits in a few words. */
function constraints(schema: Schema): string[] {
  const { type = 'any', items, const: constant, maxItems } = schema
  const { format, minLength = 0, maxLength } = { ...schema, ...schema['x-after-trimming'] }
  const list = [items === undefined ? type : `${type} of ${items.type}s`]
  if (format !== undefined) list.push(format)
  if (constant !== undefined) list.push(`always ${JSON.stringify(constant)}`)
  if (maxLength !== undefined) list.push(`${minLength === 0 ? 'at most' : `${minLength} to`} ${maxLength} characters`)
  if (maxItems !== undefined && constant === undefined) list.push(`at most ${maxItems} entries`)
  return list
}

/** A header of an answer. */
interface Found {
  readonly status: string
  readonly name: string
  readonly field: HeaderField
}

/** The headers of one answer. */
const headersOf = (status: string, { headers = {} }: Pick<Answer, 'headers'>): Found[] =>
  Object.entries(headers).map(([name, field]) => ({ status, name, field }))

/** One entry for each response header. */
export const headers = (fields: Answer['headers']): string[] => headerList(headersOf('', { headers: fields ?? {} }))

const statusesOf = (found: readonly Found[]): string[] => found.map(({ status }) => status)

/** One entry for each header of these. */
function headerList(
  all: readonly Found[],
  remarksOf: (found: readonly Found[]) => readonly string[] = () => [],
): string[] {
  return [...Map.groupBy(all, ({ name }) => name).values()].map(found => {
    const [{ name, field }] = found as [Found]
    const remarks = field.required ? [...remarksOf(found), 'always'] : remarksOf(found)
    const values = found.map(({ field: { schema } }) => schema.const ?? schema.examples?.[0])
    const shown = [...new Set(values)].filter(value => value !== undefined).map(value => code(String(value)))
    const label = (field.schema.const === undefined ? 'Example' : 'Value') + (shown.length === 1 ? '' : 's')
    return definition(
      name,
      remarks,
      prose(field.description),
      shown.length > 0 ? `${label}: ${shown.join(', ')}` : undefined,
    )
  })
}

/** Headers that only other answers have, or have with another meaning. */
const furtherHeaders = (others: Readonly<Record<string, Answer>>, success: Answer | undefined): Found[] =>
  Object.entries(others)
    .flatMap(([status, answer]) => headersOf(status, answer))
    .filter(({ name, field }) => success?.headers?.[name]?.description !== field.description)
