import { fstatSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import type { LogFormat, LogLevel } from '../config.ts'

/** Bytes of lines that wait to be written; more are dropped. */
const WAITING = 1024 * 1024

export interface OpenLog {
  readonly log: Logger
  /** Waits until the lines so far are on the terminal, or were lost. Elsewhere there is nothing to wait for. */
  shown(): Promise<void>
}

/**
 * The log on standard output: text for people on a terminal, otherwise lines of JSON, unless the format says. Where that
 * cannot be written, on a full disk or a closed terminal, lines are lost and the service goes on.
 */
export async function openLog(level: LogLevel, format: LogFormat): Promise<OpenLog> {
  const output = pino.destination({ dest: 1, maxLength: WAITING })
  // It tries again with the next line. But the last flush, at the end of the process, would try for ever.
  const { flushSync } = output
  output.on('error', () => {
    output.flushSync = () => {}
  })
  output.on('drain', () => {
    output.flushSync = flushSync
  })
  const options = { level, timestamp: pino.stdTimeFunctions.isoTime }
  const isText = format === 'text' || (format === 'auto' && (await isTerminal()))
  if (!isText) return { log: pino(options, output), shown: async () => {} }

  const { textOf } = await import('./log-text.ts')
  const { stdout } = process
  let waits: PromiseWithResolvers<void> | undefined
  for (const event of ['drain', 'error', 'close'] as const) {
    output.on(event, () => {
      waits?.resolve()
      waits = undefined
    })
  }
  const people = {
    write(line: string) {
      waits ??= Promise.withResolvers()
      output.write(textOf(line, { columns: stdout.columns, colours: stdout.isTTY && stdout.hasColors() }))
    },
    flushSync: () => output.flushSync(),
  }
  return { log: pino(options, people), shown: async () => waits?.promise }
}

/** A look at `process.stdout` would open it, and what asks a terminal is loaded only where there may be one. */
const isTerminal = async (): Promise<boolean> =>
  fstatSync(1).isCharacterDevice() && (await import('node:tty')).isatty(1)
