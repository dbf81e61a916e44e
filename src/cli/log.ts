import { type Logger, pino } from 'pino'

/** Bytes of lines that wait to be written; more are dropped. */
const WAITING = 1024 * 1024

/**
 * The log, in lines of JSON on standard output. Where that cannot be written, on a full disk or a closed terminal, lines
 * are lost and the service goes on.
 */
export function openLog(level: string): Logger {
  const output = pino.destination({ dest: 1, maxLength: WAITING })
  // It tries again with the next line. But the last flush, at the end of the process, would try for ever.
  const { flushSync } = output
  output.on('error', () => {
    output.flushSync = () => {}
  })
  output.on('drain', () => {
    output.flushSync = flushSync
  })
  return pino({ level, timestamp: pino.stdTimeFunctions.isoTime }, output)
}
