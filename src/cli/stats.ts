import { operatorOf } from '../app/operator.ts'
import { report } from '../charts/terminal.ts'
import type { Config } from '../config/config.ts'
import { type Stats, statsOf } from '../waitlist/alerts/counts.ts'
import { misused } from './complain.ts'
import { paint, print, toJson } from './print.ts'
import { watchLines, watchOn } from './watch.ts'

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
  const lines = (read: Stats, width: number) => report(config.server.service, read, { width, paint })
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
