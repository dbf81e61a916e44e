import { closeSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { OperatorError } from '../waitlist/ports/log.ts'
import type { Environment } from './kinds.ts'

export interface EnvFile {
  /** Absolute. */
  readonly path: string
  readonly values: Environment
  /** Names at the beginning of lines that are no assignments, such as `PORT: 8080`. */
  readonly unassigned: readonly string[]
}

/** Bytes. What has more, such as a device without an end, is not a file of settings. */
const MAX_BYTES = 64 * 1024

const UTF_16: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' }

/**
 * The file `.env` in the working directory; null if there is none. It is UTF-8, or UTF-16 if its first bytes say so.
 *
 * @throws {OperatorError} when it cannot be read, has more than 64 KiB, or is not text.
 */
export function readEnvFile(): EnvFile | null {
  let bytes: Buffer
  try {
    bytes = bytesOf('.env')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    const why = { EISDIR: 'it is a folder', EACCES: 'this user has no right to' }[String(code)] ?? message
    throw new OperatorError(`The file ${resolve('.env')} cannot be read: ${why}`)
  }
  const path = resolve('.env')
  if (bytes.length > MAX_BYTES) throw new OperatorError(`The file ${path} is larger than 64 KiB.`)
  const text = decoded(bytes)
  if (text === undefined) throw new OperatorError(`The file ${path} is not UTF-8 text. Save it as UTF-8.`)
  const values = parseEnv(text)
  const unassigned = [...text.matchAll(/^[ \t]*(?:export[ \t]+)?([A-Z][A-Z0-9_]+)(?:[ \t]*:|[ \t]+[^\s=])/gm)]
    .map(([, name]) => name!)
    .filter(name => !(name in values))
  return { path, values, unassigned }
}

/** One byte more than is allowed at most. Password managers offer the file as a pipe, which has no size. */
function bytesOf(path: string): Buffer {
  const bytes = Buffer.alloc(MAX_BYTES + 1)
  const file = openSync(path, 'r')
  try {
    let length = 0
    for (let read = 1; read > 0 && length < bytes.length; length += read)
      read = readSync(file, bytes, { offset: length })
    return bytes.subarray(0, length)
  } finally {
    closeSync(file)
  }
}

function decoded(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder(UTF_16[bytes.toString('hex', 0, 2)] ?? 'utf-8', { fatal: true }).decode(bytes)
    // UTF-16 without its mark looks like this.
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}
