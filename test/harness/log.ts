import assert from 'node:assert/strict'
import { type Logger, pino } from 'pino'
import type { Log } from '../../src/config/operator.ts'

export interface Line {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
  readonly details: object
}

/** Keeps every line, and refuses what must never be in one. */
export function keptLog(): { readonly log: Log; readonly lines: Line[] } {
  const lines: Line[] = []
  const keep = (level: Line['level']) => (details: object, message: string) => {
    assert.doesNotMatch(JSON.stringify([details, message]), /@|lovelace/i, 'a person in the log')
    lines.push({ level, message, details })
  }
  return { log: { info: keep('info'), warn: keep('warn'), error: keep('error') }, lines }
}

export function recordingLog(): { log: Logger; logged: Record<string, unknown>[] } {
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  return { log, logged }
}
