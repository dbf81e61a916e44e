import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Writes to standard output as fast as its reader takes it. */
export async function print(texts: Iterable<string> | AsyncIterable<string>): Promise<void> {
  try {
    await pipeline(Readable.from(texts), process.stdout, { end: false })
  } catch (error) {
    // The reader had enough (`| head`).
    if ((error as NodeJS.ErrnoException).code !== 'EPIPE') throw error
  }
}
