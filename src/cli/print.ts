import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Writes to standard output at its reader's speed. */
export async function print(texts: Iterable<string> | AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(texts), process.stdout, { end: false })
  } catch (error) {
    // The reader has closed the pipe (`| head`).
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}
