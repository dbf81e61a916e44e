import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { WriteStream } from 'node:tty'
import { styleText } from 'node:util'

/** Writes to standard output at its reader's speed. */
export async function print(texts: Iterable<string> | AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(inChunks(texts)), process.stdout, { end: false })
  } catch (error) {
    // The reader has closed the pipe (`| head`).
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}

/** In colour where the stream shows colours, which NO_COLOR and TERM=dumb deny. */
export const paint = (
  style: Parameters<typeof styleText>[0],
  text: string,
  stream: WriteStream = process.stdout,
): string => (stream.isTTY && stream.hasColors() ? styleText(style, text, { validateStream: false }) : text)

/** UTF-16 code units. */
const CHUNK = 65_536

/** Fewer and larger texts, since each is written for itself. */
export async function* inChunks(texts: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  let chunk = ''
  for await (const text of texts) {
    chunk += text
    if (chunk.length < CHUNK) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}

/** What would control a terminal or the order of letters. The two joiners are part of how names are spelt. */
const CONTROLLING = /(?![\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

const escaped = (text: string): string =>
  text.replaceAll(/[\s\S]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** A value on a line; with `indent` on several, for people. What strangers typed controls nothing, and stays the same value. */
export const toJson = (value: unknown, indent = 0): string =>
  `${JSON.stringify(value, null, indent).replaceAll(CONTROLLING, escaped)}\n`
