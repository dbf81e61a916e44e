import { jsonIn } from './reply.ts'

/** The members in which vendors say what is wrong. */
const TELLING = /^(?:code|title|name|type|category|message|errors?|detail|context)$/
const LONGEST = 200

/**
 * What an error answer says, for the log: one line of at most 200 characters, without addresses, without `secrets`, and
 * without anything that we sent or any word of it, since that may be somebody's name.
 */
export function excerpt(json: unknown, sent: unknown, secrets: readonly string[] = []): string {
  const said: string[] = []
  collect(json, said, 0)
  const texts = textsIn(sent).map(onOneLine)
  return withoutWords(
    without(onOneLine(said.join(', ')), [...texts.filter(text => text.length > 2), ...secrets]),
    texts,
  )
    .split(' ')
    .map(word => (/@|%40/.test(word) ? '…' : word))
    .join(' ')
    .slice(0, LONGEST)
}

const onOneLine = (text: string): string => text.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()

function collect(json: unknown, said: string[], depth: number): void {
  if (typeof json === 'string' && json !== '') said.push(json)
  if (typeof json !== 'object' || json === null || depth > 3 || said.length > 4) return
  if (Array.isArray(json)) for (const each of json.slice(0, 3)) collect(each, said, depth + 1)
  else for (const [name, value] of Object.entries(json)) if (TELLING.test(name)) collect(value, said, depth + 1)
}

function textsIn(sent: unknown): string[] {
  const texts: string[] = []
  JSON.stringify(sent, (_, each) => {
    if (typeof each !== 'string') return each
    // A body may be JSON already.
    const inner = each.startsWith('{') ? jsonIn(each) : undefined
    texts.push(...(inner === undefined ? [each] : textsIn(inner)))
    return each
  })
  return texts
}

/** Hides the texts, ignoring case. The longest go first, so that hiding a part of one does not leave the rest of it. */
function without(line: string, texts: readonly string[]): string {
  if (texts.length === 0) return line
  const longestFirst = texts.toSorted((a, b) => b.length - a.length)
  const escaped = longestFirst.map(text => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&'))
  return line.replaceAll(new RegExp(escaped.join('|'), 'giu'), '…')
}

const WORD = /[\p{L}\p{M}\p{N}]+/gu

function withoutWords(line: string, texts: readonly string[]): string {
  const hidden = new Set(texts.flatMap(text => text.toLowerCase().match(WORD) ?? []))
  return line.replaceAll(WORD, word => (hidden.has(word.toLowerCase()) ? '…' : word))
}
