import { writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import type { LogLevel } from '../config/load.ts'

/** Bytes of lines that wait to be written, beyond which more are dropped. */
const WAITING = 1024 * 1024

const FATAL = `{"level":${pino.levels.values.fatal},`

/** The log on standard output, in lines of JSON. Where it cannot be written, the service goes on, and ends, without it. */
export function openLog(level: LogLevel): Logger {
  const destination = pino.destination({ dest: 1, sync: false, maxLength: WAITING })
  // A line that could not be written is tried again with the next one.
  destination.on('error', () => {})
  // At a fatal error and at the end pino's own flush would try for ever where the disk is full.
  const { _bufs: waiting } = destination as unknown as { readonly _bufs: string[] }
  destination.flushSync = () => {
    try {
      while (waiting.length > 0) writeSync(1, waiting.shift()!)
    } catch {}
  }
  // The process kills itself after a fatal line, and what another thread is about to write is lost then.
  const { write } = destination
  destination.write = line => {
    if (!line.startsWith(FATAL)) return write.call(destination, line)
    waiting.push(line)
    destination.flushSync()
    return true
  }
  return pino({ level, timestamp: pino.stdTimeFunctions.isoTime }, destination)
}
