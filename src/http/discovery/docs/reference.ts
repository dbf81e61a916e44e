import type { OpenapiDocument } from '../openapi.ts'
import { blocks, code, definition, definitions, escaped, example, idOf, prose } from './commonmark.ts'
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

/**
 * The calls, in CommonMark. The Markdown says all of each call; the page says the signup call in full, puts those that only
 * read into a table, and says once what several have in common.
 */

/** One endpoint: what to send, what comes back, what can go wrong. */
export function endpoint(api: OpenapiDocument, base: string, call: Call): string {
  const { summary, requestBody, responses } = call.operation
  const { 200: success, ...others } = responses
  const refusals = Object.entries(others).sort(byStatus)
  const refused = refusals.find(([status]) => status.startsWith('4'))
  return blocks(
    `### ${escaped(summary)}`,
    request(api, call),
    example('Request', ...requestSamples(base, call)),
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
    definitions('Request headers, all optional', parametersIn(operation, 'header')),
    definitions('Query parameters, all optional', parametersIn(operation, 'query')),
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

/** The signup call: its request, its success and its refusals, each with an example that goes beside it. */
export function pageSignup(api: OpenapiDocument, call: Call): string {
  const { summary, requestBody, responses } = call.operation
  const { 200: success, ...others } = responses
  const { type, media } = firstMedia(requestBody!.content)!
  const sample = Object.values(media.examples ?? {})[0]?.value
  return blocks(
    `### ${summary}`,
    request(api, call),
    example('Request', {
      language: 'http',
      code: `${call.method} ${call.path} HTTP/1.1\nHost: ${new URL(api.servers[0]!.url).host}\nContent-Type: ${type}\n\n${pretty(sample)}`,
    }),
    `Success is \`200\` with ${code(firstMedia(success!.content)!.type)}. ${prose(success!.description)}`,
    definitions('Response fields', members(api, firstMedia(success!.content)!.media.schema, 'always')),
    card('Errors, and what they say', Object.entries(others).sort(byStatus).map(refusal)),
  )
}

/** Entries that go beside the text, as an example does. */
const card = (title: string, entries: readonly string[]): string => blocks(`**${title}**`, ...entries)

/** Characters of an example beyond which a reader rather opens the real answer: the path in the table leads there. */
const LONG = 500

/** A call that only reads. All but its summary, method and path is CommonMark. */
export interface Reading {
  readonly summary: string
  readonly method: string
  readonly path: string
  readonly call: string
  readonly about: string
  /** The media types of its body. */
  readonly types: readonly string[]
  /** The value of Cache-Control. */
  readonly caching: string
  /** The fields of its body, and an example; empty if the body is a document. */
  readonly details: string
}

export const readings = (api: OpenapiDocument, calls: readonly Call[]): Reading[] =>
  calls.map(({ method, path, operation: { summary, description, responses } }) => {
    const { 200: success } = responses
    const media = firstMedia(success?.content)?.media
    const fields = members(api, media?.schema ?? {}, 'always')
    return {
      summary,
      method,
      path,
      call: code(`${method} ${path}`),
      about: prose(description),
      types: Object.keys(success?.content ?? {}),
      caching: String(success?.headers?.['Cache-Control']?.schema.const),
      details:
        fields.length === 0
          ? ''
          : blocks(
              `\`200\` with ${code(firstMedia(success!.content)!.type)}. ${prose(success!.description)}`,
              ...fields,
              ...answerExamples('200', success!).filter(({ length }) => length < LONG),
            ),
    }
  })

/**
 * The headers of all calls, without those of signups that `told` names, and the refusals of the calls that only read. Each
 * is told once, with the status or the call that alone has it.
 */
export function shared(calls: readonly Call[], told: readonly string[]): string {
  const answers = calls.flatMap(({ method, path, operation: { summary, responses } }) =>
    Object.entries(responses).map(([status, answer]) => ({ method, path, summary, status, answer })),
  )
  const headers = answers
    .flatMap(({ method, path, status, answer }) =>
      headersOf(status, answer).map(header => ({ ...header, method, path })),
    )
    .filter(({ method, name }) => method === 'GET' || !told.includes(name))
  const refused = answers.filter(({ method, status }) => method === 'GET' && status !== '200')
  const refusals = [...Map.groupBy(refused, ({ status, answer }) => status + answer.description).values()].map(
    (found): [string, Answer] => {
      const { status, answer, summary } = found[0]!
      const only = found.length === 1 ? ` Only: [${summary}](#${idOf(summary)}).` : ''
      return [status, { ...answer, description: answer.description + only }]
    },
  )
  return blocks(
    ...headerList(headers, alone, ({ name, field }) => name + field.description),
    card('Errors of these calls, and what they say', refusals.sort(byStatus).map(refusal)),
  )
}

/** The status that alone has a header, or else the call. */
function alone(found: readonly { status: string; path: string }[]): string[] {
  const [statuses, paths] = [new Set(found.map(({ status }) => status)), new Set(found.map(({ path }) => path))]
  return statuses.size === 1 ? [...statuses] : paths.size === 1 ? [...paths].map(code) : []
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
const parametersIn = ({ parameters = [] }: Operation, place: Parameter['in']): string[] =>
  parameters
    .filter(each => each.in === place)
    .map(({ name, description, schema }) =>
      definition(name, [schema.type ?? 'any'], prose(description), `Example: ${code(String(schema.examples?.[0]))}`),
    )

/** Type and limits in a few words. */
function constraints(schema: Schema): string[] {
  const { type = 'any', items, const: constant, minimum, maxItems } = schema
  const { format, minLength = 0, maxLength } = { ...schema, ...schema['x-after-trimming'] }
  const list = [items === undefined ? type : `${type} of ${items.type}s`]
  if (format !== undefined) list.push(format)
  if (constant !== undefined) list.push(`always ${JSON.stringify(constant)}`)
  if (maxLength !== undefined) list.push(`${minLength === 0 ? 'at most' : `${minLength} to`} ${maxLength} characters`)
  if (minimum !== undefined) list.push(`at least ${minimum}`)
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

/** One entry for each header of these, or for each meaning that it has among them. */
function headerList<F extends Found>(
  all: readonly F[],
  remarksOf: (found: readonly F[]) => readonly string[] = () => [],
  keyOf: (found: F) => string = ({ name }) => name,
): string[] {
  return [...Map.groupBy(all, keyOf).values()].map(found => {
    const [{ name, field }] = found as [F]
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
