import { closeSync, openSync, writeSync } from 'node:fs'
import { OperatorError } from '../../waitlist/ports/log.ts'
import { csvField } from '../formats.ts'
import type { BadLine, Given } from './contacts.ts'

/** Bad lines that are kept for the report; the file of `--report` has all of them. */
const KEPT = 1_000

export interface Reporting {
  /** How many lines are bad. */
  readonly invalid: number
  /** The first of them. */
  readonly lines: readonly BadLine[]
  note(bad: BadLine, given: Given): void
  close(): void
}

/**
 * Collects bad lines. With a file, all of them are written there with the names and addresses, readable by this user alone.
 *
 * @throws {OperatorError} when the file exists already or cannot be made.
 */
export function reporting(file: string | undefined): Reporting {
  const descriptor = file === undefined ? undefined : created(file)
  const write = (...fields: readonly string[]) => {
    if (descriptor !== undefined) writeSync(descriptor, `${fields.map(csvField).join(',')}\r\n`)
  }
  write('line', 'reason', 'name', 'email')
  let invalid = 0
  const lines: BadLine[] = []
  return {
    get invalid() {
      return invalid
    },
    lines,
    note(bad, { name, email }) {
      invalid++
      if (lines.length < KEPT) lines.push(bad)
      write(String(bad.line), bad.reason, textOf(name), textOf(email))
    },
    close() {
      if (descriptor !== undefined) closeSync(descriptor)
    },
  }
}

function created(file: string): number {
  try {
    return openSync(file, 'wx', 0o600)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new OperatorError(`${file} exists already. A report never overwrites a file.`)
    throw new OperatorError(`${file} cannot be written: ${message}`)
  }
}

/** Of what a file has in the place of a name. */
const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
