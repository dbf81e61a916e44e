/** `done` and `total` count rows. */
interface Progress {
  readonly phase: string
  readonly done: number
  readonly total: number
}

/** The part of a stream that showing progress needs. */
export interface Screen {
  readonly isTTY?: boolean
  write(text: string): unknown
}

/** Milliseconds between two updates of the bar, and between two lines without a terminal. */
const BAR_EVERY = 100
const LINE_EVERY = 10_000
const WIDTH = 30

/** Shows the progress of a command: a bar on a terminal, otherwise a line now and then. */
export function progressOn(screen: Screen, now = () => performance.now()) {
  const every = screen.isTTY ? BAR_EVERY : LINE_EVERY
  let phase = ''
  let began = 0
  let shown = 0
  let unfinished = false

  function end(): void {
    if (unfinished) screen.write('\n')
    unfinished = false
  }

  return {
    show({ phase: current, done, total }: Progress): void {
      if (total === 0) return
      if (phase !== current) {
        end()
        began = now()
        phase = current
      } else if (now() - shown < every && done < total) return
      shown = now()
      const percent = Math.floor((100 * done) / total)
      const text = `${phase}: ${done.toLocaleString('en')} of ${total.toLocaleString('en')} rows, ${percent} %`
      if (!screen.isTTY) {
        screen.write(`${text}\n`)
        return
      }
      const full = Math.floor((WIDTH * done) / total)
      const bar = `[${'#'.repeat(full)}${' '.repeat(WIDTH - full)}]`
      // Returns to the start of the line, and clears the rest of a longer text (ECMA-48 EL).
      screen.write(`\r${bar} ${text}${left(done, total, now() - began)}\x1b[K`)
      unfinished = true
    },
    /** Ends the line of the bar. */
    end,
  }
}

/** No estimate during the first moments, which say little about the rest. */
function left(done: number, total: number, milliseconds: number): string {
  if (done === 0 || done === total || milliseconds < 2_000) return ''
  return `, ${Math.ceil(((total - done) * milliseconds) / done / 1_000)} s left`
}
