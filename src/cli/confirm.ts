import { createInterface } from 'node:readline'

/** Whether there is somebody to ask, and a place to ask it. */
export const mayAsk = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY)

/** Asks on standard error. Anything but yes is a no, and so is the end of the input. */
export async function confirmed(question: string): Promise<boolean> {
  process.stderr.write(`${question} [y/N] `)
  try {
    for await (const line of createInterface({ input: process.stdin })) return /^\s*y(?:es)?\s*$/i.test(line)
  } finally {
    // A terminal that is still read from would keep the process from ending.
    process.stdin.destroy()
  }
  process.stderr.write('\n')
  return false
}
