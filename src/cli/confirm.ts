import { createInterface } from 'node:readline'

/** Whether there is somebody to ask, and a place to ask it. */
export const mayAsk = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY)

/** Asks on standard error. Anything but yes is a no, and so is the end of the input. */
export async function confirmed(question: string): Promise<boolean> {
  process.stderr.write(`${question} [y/N] `)
  for await (const line of createInterface({ input: process.stdin })) return /^\s*y(?:es)?\s*$/i.test(line)
  process.stderr.write('\n')
  return false
}
