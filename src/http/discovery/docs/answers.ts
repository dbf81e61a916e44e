import type { Block, RefusalRow, Row } from './content.ts'
import { fieldRows } from './members.ts'
import { type Answer, fieldValue, firstMedia, type HeaderField } from './shape.ts'

/** The answers of an endpoint, in the forms in which the documentation shows them. */

/** One card for each example of a body. */
export function answerCards(status: string, { content }: Answer): Block[] {
  const [, media] = firstMedia(content) ?? []
  return Object.entries(media?.examples ?? {}).map(([name, { summary, value }]) => {
    const title = summary ?? 'Response'
    return { is: 'code', title, status, samples: [{ title: name, language: 'json', code: pretty(value) }] }
  })
}

/** An answer as it comes over the line, with the header fields that are always there. */
export function rawAnswer(status: string, answer: Answer): Block {
  const [type, media] = firstMedia(answer.content) ?? []
  const fields = Object.entries(answer.headers ?? {})
    .filter(([, field]) => field.required)
    .map(([name, field]) => `${name}: ${fieldValue(field)?.text ?? '…'}\n`)
  const example = Object.values(media?.examples ?? {})[0]
  const code = `HTTP/1.1 ${status}\nContent-Type: ${type}\n${fields.join('')}\n${pretty(example?.value)}`
  return { is: 'code', title: 'Response', status, samples: [{ title: 'Response', language: 'http', code }] }
}

const pretty = (value: unknown): string => JSON.stringify(value, null, 2)

export function refusalRow([status, { description, content }]: [string, Answer]): RefusalRow {
  const [, media] = firstMedia(content) ?? []
  const sentences = Object.values(media?.examples ?? {}).map(({ value }) => (value as { error: string }).error)
  return { status, text: description, sentences }
}

/** Header fields of other answers that a success has not, or not with this meaning, each with its statuses. */
export function furtherFields(others: Readonly<Record<string, Answer>>, success: Answer | undefined): Row[] {
  const found: Record<string, HeaderField> = {}
  const statuses = new Map<string, string[]>()
  for (const [status, { headers = {} }] of Object.entries(others)) {
    for (const [name, field] of Object.entries(headers)) {
      if (success?.headers?.[name]?.description === field.description) continue
      found[name] ??= field
      statuses.set(name, [...(statuses.get(name) ?? []), status])
    }
  }
  return fieldRows(found, name => statuses.get(name) ?? [])
}
