import type { OpenapiDocument } from '../openapi.ts'
import { blocks, code, definitions, example, idOf, prose } from './commonmark.ts'
import { answerExamples, headerList, headersOf, members, parametersIn, refusal } from './reference.ts'
import { type Answer, type Call, firstMedia } from './shape.ts'

/**
 * The reference as the page has it, in CommonMark: the signup call in full, and the calls that only read as rows of a
 * table. What several calls have in common is said once.
 */

/** The signup call: its request, its success and its refusals, each with an example that goes beside it. */
export function pageSignup(api: OpenapiDocument, { method, path, operation }: Call): string {
  const { summary, description, requestBody, responses } = operation
  const { 200: success, ...others } = responses
  const body = firstMedia(requestBody!.content)!
  const sample = Object.values(body.media.examples ?? {})[0]?.value
  return blocks(
    `### ${summary}`,
    code(`${method} ${path}`),
    prose(description),
    definitions('Request fields', members(api, body.media.schema, '**required**')),
    prose(requestBody!.description),
    definitions('Request headers, all optional', parametersIn(operation, 'header')),
    definitions('Query parameters, all optional', parametersIn(operation, 'query')),
    example('Request', {
      language: 'http',
      code: `${method} ${path} HTTP/1.1\nHost: ${new URL(api.servers[0]!.url).host}\nContent-Type: ${body.type}\n\n${JSON.stringify(sample, null, 2)}`,
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
