import { fstatSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import type { LogFormat, LogLevel } from '../config/config.ts'
import { linesTo } from './lines.ts'

/**
 * The log on standard output: text for people on a terminal, otherwise lines of JSON, unless the format says. Where that
 * cannot be written, the service goes on, and what was dropped is counted.
 */
export async function openLog(level: LogLevel, format: LogFormat): Promise<Logger> {
  const { write } = linesTo(1, lines => log.warn({ lines }, 'lines of the log were dropped: it could not be written'))
  const options = { level, timestamp: pino.stdTimeFunctions.isoTime }
  const isText = format === 'text' || (format === 'auto' && (await isTerminal()))
  const log: Logger = pino(options, { write: isText ? await asText(write) : write })
  return log
}

async function asText(write: (text: string) => void): Promise<(line: string) => void> {
  const { textOf } = await import('./log-text.ts')
  const { stdout } = process
  return line => write(textOf(line, { columns: stdout.columns, colours: stdout.isTTY && stdout.hasColors() }))
}

/** A look at `process.stdout` would open it, and what asks a terminal is loaded only where there may be one. */
const isTerminal = async (): Promise<boolean> =>
  fstatSync(1).isCharacterDevice() && (await import('node:tty')).isatty(1)
