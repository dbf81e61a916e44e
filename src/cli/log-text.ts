/** The log for people: nothing in it controls the terminal, not even what a stranger has sent. */

import { styleText } from 'node:util'
import { cells, plain } from '../charts/text.ts'

/** Where the text is shown. */
export interface Screen {
  /** Cells of a line, at whose end the text goes on in the next one; undefined: it is not broken. */
  readonly columns?: number | undefined
  readonly colours: boolean
}

type Style = Parameters<typeof styleText>[0]

/** The levels of pino, whose lines have their numbers. */
const levels: Readonly<Record<number, readonly [name: string, style: Style]>> = {
  20: ['debug', 'dim'],
  30: ['info', 'green'],
  40: ['warn', 'yellow'],
  50: ['error', 'red'],
  60: ['fatal', ['bold', 'red']],
}

/** `HH:MM:SS level  `: what comes after it begins in the same column everywhere. */
const INDENT = 16
/** Cells. On a narrower screen the terminal itself breaks lines better. */
const NARROWEST = 3 * INDENT

/**
 * A line of the log (JSON) as text: the local time, the level, the message, the other members as key=value, and the stack of
 * an error below it. It ends with a line feed.
 */
export function textOf(line: string, { columns = 0, colours }: Screen): string {
  const { time, level, msg = '', pid, hostname, err, ...members } = JSON.parse(line)
  const { type, message, stack, ...ofError } = err ?? {}
  const paint = (style: Style, text: string) => (colours ? styleText(style, text, { validateStream: false }) : text)

  const [name, style] = levels[level] ?? [String(level), 'dim']
  const head = `${paint('dim', new Date(time).toTimeString().slice(0, 8))} ${paint(style, name.padEnd(INDENT - 9))}`
  const words = plain(String(msg))
    .split(' ')
    .map(word => [word, word] as const)
  for (const [key, value] of Object.entries({ ...members, ...ofError })) {
    const [first = '', ...more] = written(value).split(' ')
    const equals = `${plain(key)}=`
    words.push([equals + first, paint('dim', equals) + first], ...more.map(word => [word, word] as const))
  }
  const told: string = stack ?? message ?? ''
  const below = told === '' ? [] : told.split('\n').map(each => `${' '.repeat(INDENT)}${plain(each).trim()}\n`)
  return `${head}${broken(words, columns < NARROWEST ? Number.POSITIVE_INFINITY : columns)}\n${below.join('')}`
}

function written(value: unknown): string {
  if (typeof value !== 'string') return plain(JSON.stringify(value))
  const text = plain(value)
  return /[ "=]|^$/.test(text) ? JSON.stringify(text) : text
}

/** Words and how they are painted, in lines. */
function broken(words: readonly (readonly [word: string, shown: string])[], columns: number): string {
  let text = ''
  let used = INDENT
  for (const [word, shown] of words) {
    const width = cells(word)
    const isFirst = used === INDENT
    const fits = isFirst || used + 1 + width <= columns
    text += `${isFirst ? '' : fits ? ' ' : `\n${' '.repeat(INDENT)}`}${shown}`
    used = isFirst || !fits ? INDENT + width : used + 1 + width
  }
  return text
}
