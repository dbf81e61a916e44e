import { number } from './print.ts'

/** `done` and `total` count rows. */
interface Progress {
  readonly phase: string
  readonly done: number
  readonly total: number
}

/** The part of a stream that showing progress needs. */
export interface Screen {
  readonly isTTY?: boolean
  /** How wide a terminal is; 0: it does not say. */
  readonly columns?: number
  write(text: string): unknown
}

/** Milliseconds between two updates of the bar. */
const EVERY = 100
const WIDTH = 30

/** Rows. Fewer take a moment. */
const MANY = 5_000

/** Shows the progress of a command as a bar on a terminal, and nothing elsewhere. */
export function progressOn(screen: Screen, now = () => performance.now()) {
  let phase = ''
  let began = 0
  let shown = 0
  let unfinished = false

  function end(): void {
    if (unfinished) screen.write('\n')
    unfinished = false
  }

  function show({ phase: current, done, total }: Progress): void {
    if (!screen.isTTY || total === 0) return
    if (phase !== current) {
      end()
      began = now()
      phase = current
    } else if (now() - shown < EVERY && done < total) return
    shown = now()
    const percent = Math.floor((100 * done) / total)
    const line = `${phase}: ${number(done)} of ${number(total)} rows, ${percent} %${pace(done, total, now() - began)}`
    // In one line, or the next update would not return to its start.
    const width = Math.min(WIDTH, (screen.columns || Number.POSITIVE_INFINITY) - line.length - 4)
    const full = Math.floor((width * done) / total)
    const bar = width > 0 ? `[${'#'.repeat(full)}${' '.repeat(width - full)}] ` : ''
    // Returns to the start of the line, and clears the rest of a longer text (ECMA-48 EL).
    screen.write(`\r${bar}${line}\x1b[K`)
    unfinished = true
  }

  return {
    show,
    /** Shows one phase, unless it has few rows. `total` is of its beginning: more may be done by now. */
    of: (phase: string) => (done: number, total: number) => {
      if (total > MANY) show({ phase, done: Math.min(done, total), total })
    },
    /** Ends the line of the bar. */
    end,
  }
}

/** Not during the first moments, which say little about the rest. */
function pace(done: number, total: number, milliseconds: number): string {
  if (done === 0 || done === total || milliseconds < 2_000) return ''
  const rate = (done / milliseconds) * 1_000
  return `, ${number(Math.round(rate))}/s, ${Math.ceil((total - done) / rate)} s left`
}
