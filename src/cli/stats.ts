import { setTimeout as wait } from 'node:timers/promises'
import { operatorOf } from '../app/database.ts'
import { report } from '../charts/terminal.ts'
import type { Config } from '../config/config.ts'
import { type Stats, statsOf } from '../waitlist/alerts/counts.ts'
import { misused } from './console.ts'
import { paint, print, toJson } from './print.ts'

export interface StatsOptions {
  readonly watch?: true
  readonly json?: true
  readonly timezone: string
}

/** Writes what the list amounts to: once, or again and again until it is stopped; for people, or as JSON. */
export async function stats(config: Config, { watch, json, timezone }: StatsOptions): Promise<void> {
  const { stdout } = process
  if (watch && !json && !stdout.isTTY) {
    return misused('--watch draws on a terminal, which this is not. With --json it writes a line every two seconds.')
  }
  const operator = await operatorOf(config)
  const read = async (): Promise<Stats> => statsOf(await operator.counts(), timezone)
  const lines = (read: Stats, width: number) => report(config.service, read, { width, paint })
  if (!watch) {
    const found = await read()
    return print([json ? line(found) : `${lines(found, stdout.columns || 80).join('\n')}\n`])
  }
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort())
  if (!json) return watchOn(stdout, { read, draw: lines, stop: stop.signal })
  // Without a listener, an error would end the process before the one who wrote hears of it.
  stdout.on('error', () => {})
  return watchLines(async () => line(await read()), writeLine, stop.signal)
}

const line = (read: Stats): string => toJson(read)

/** False: the reader has closed the pipe. */
function writeLine(text: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, error => {
      if (error != null && (error as NodeJS.ErrnoException).code !== 'EPIPE') reject(error)
      else resolve(error == null)
    })
  })
}

/** The part of a terminal that showing figures live needs. */
export interface Terminal {
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
  on(event: 'resize', listener: () => void): unknown
  off(event: 'resize', listener: () => void): unknown
}

export interface Watching<T> {
  read(): Promise<T>
  /** Lines for so many columns. */
  draw(figures: T, columns: number): readonly string[]
  /** Ends it. */
  readonly stop: AbortSignal
}

/** Milliseconds between two looks at the store, unless a look takes longer than a quarter of that; and of a tick. */
const EVERY = 2_000
const TICK = 1_000

/** How long to rest after a look that took so many milliseconds: at most a fifth of the time is spent looking. */
const restAfter = (took: number): number => Math.max(EVERY - took, 4 * took)

// ECMA-48 and xterm's private modes: the other screen, without a cursor; its beginning, the rest of a line, all below.
const [ENTER, LEAVE] = ['\x1b[?1049h\x1b[?25l', '\x1b[?25h\x1b[?1049l']
const [HOME, REST, BELOW] = ['\x1b[H', '\x1b[K', '\x1b[J']

/**
 * Shows figures on a terminal, read again and again and drawn in place, until it is stopped. The terminal is then as it was.
 * If they cannot be read any more, the last ones stay, with their age and the reason.
 */
export async function watchOn<T>(terminal: Terminal, { read, draw, stop }: Watching<T>): Promise<void> {
  let figures = await read()
  if (stop.aborted) return
  let readAt = performance.now()
  let problem = ''

  function show(): void {
    // 0: the terminal does not know its size, as in a container or on a serial line.
    const [columns, rows] = [terminal.columns || 80, terminal.rows || 24]
    const age = Math.round((performance.now() - readAt) / 1_000)
    const drawn = draw(figures, columns)
    // One row stays free, or the last line would move all others up.
    const shown = drawn.slice(0, Math.max(0, rows - 3))
    const cut = drawn.length - shown.length
    const status = [
      cut === 0 ? '' : `${cut} more ${cut === 1 ? 'line' : 'lines'} in a taller window; `,
      `counted ${age} s ago${problem === '' ? '; Ctrl-C ends' : `, since then: ${problem}`}`,
    ].join('')
    const lines = [...shown, '', status.slice(0, columns)]
    terminal.write(HOME + lines.map(line => `${line}${REST}\n`).join('') + BELOW)
  }

  const ticking = setInterval(show, TICK)
  terminal.on('resize', show)
  terminal.write(ENTER)
  try {
    for (let rest = EVERY; ; ) {
      show()
      if (await stopped(rest, stop)) return
      const began = performance.now()
      try {
        figures = await read()
        readAt = performance.now()
        problem = ''
      } catch (error) {
        problem = (error as Error).message
      }
      if (stop.aborted) return
      rest = restAfter(performance.now() - began)
    }
  } finally {
    clearInterval(ticking)
    terminal.off('resize', show)
    terminal.write(LEAVE)
  }
}

/** The same as one text after the other, until one cannot be written or read. */
async function watchLines(read: () => Promise<string>, write: (text: string) => Promise<boolean>, stop: AbortSignal) {
  for (;;) {
    const began = performance.now()
    const text = await read()
    const rest = restAfter(performance.now() - began)
    if (stop.aborted || !(await write(text)) || (await stopped(rest, stop))) return
  }
}

const stopped = (milliseconds: number, stop: AbortSignal): Promise<boolean> =>
  wait(milliseconds, false, { signal: stop }).catch(() => true)
