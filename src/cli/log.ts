import { fstatSync, write, writeSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import type { LogFormat, LogLevel } from '../config/config.ts'

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

/** Bytes of waiting lines beyond which more are dropped. */
const WAITING = 1024 * 1024
/** Milliseconds until a pipe is tried again that is full, and how often that is done at the end of the process. */
const RETRY = 100
const LAST_RETRIES = 10

/**
 * Writes lines to a file descriptor, beside the event loop, and the rest when the process ends. Where they cannot be written,
 * on a full disk or a closed terminal, they wait for the next line, which tries again. `onRoom` is told how many were dropped
 * meanwhile. pino's own destination retries for ever at the end of the process, deaf to signals.
 */
export function linesTo(descriptor: number, onRoom: (dropped: number) => void = () => {}) {
  let waiting = ''
  let chunk = Buffer.alloc(0)
  let inFlight = false
  let retry: NodeJS.Timeout | undefined
  let dropped = 0
  let waits: PromiseWithResolvers<void> | undefined

  const next = () => {
    if (chunk.length === 0) [chunk, waiting] = [Buffer.from(waiting), '']
    return chunk.length > 0
  }
  const isFull = (error: unknown) => (error as NodeJS.ErrnoException | null)?.code === 'EAGAIN'
  function begin(): void {
    if (inFlight || retry !== undefined || !next()) return
    inFlight = true
    write(descriptor, chunk, (error, written) => {
      inFlight = false
      if (isFull(error)) {
        retry = setTimeout(() => {
          retry = undefined
          begin()
        }, RETRY)
        return
      }
      if (error === null) {
        chunk = chunk.subarray(written)
        if (next()) return begin()
        const lines = dropped
        dropped = 0
        if (lines > 0) onRoom(lines)
      }
      waits?.resolve()
      waits = undefined
    })
  }

  process.once('exit', () => {
    // The thread pool finishes what it has begun, most often in time for the order of lines.
    if (inFlight) {
      chunk = Buffer.alloc(0)
      sleep(RETRY / 10)
    }
    for (let retries = 0; next(); ) {
      try {
        chunk = chunk.subarray(writeSync(descriptor, chunk))
      } catch (error) {
        if (!isFull(error) || ++retries > LAST_RETRIES) return
        sleep(RETRY)
      }
    }
  })

  return {
    /** Neither waits nor throws. */
    write(line: string): void {
      // Those after a dropped one too, so that the log tells where the gap is.
      if (dropped > 0 || chunk.length + waiting.length > WAITING) dropped++
      else waiting += line
      waits ??= Promise.withResolvers()
      begin()
    },
    /** Resolves when everything so far was written, or cannot be. */
    settled: async () => waits?.promise,
  }
}

const sleep = (milliseconds: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)
