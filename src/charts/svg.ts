import type { Bar } from '../waitlist/counts.ts'
import { marks, moment, short, ticks, type Unit, whole } from './axis.ts'

export interface Plot {
  /** What it shows, also for those who do not see it: "Signups per hour". */
  readonly title: string
  /** In ascending order; the last one is under way. */
  readonly bars: readonly Bar[]
  readonly unit: Unit
  readonly timezone: string
  /** In units of the picture, in which letters are `text` high. */
  readonly width: number
  readonly height: number
  readonly text: number
}

/**
 * The elements of a bar chart, to be put into an `svg` or a `g` element. The colours are the page's: it styles the classes
 * `bar` (the last one is `bar now`), `grid` (lines) and `axis` (text). Pointing at a bar tells its number.
 */
export function bars({ bars, unit, timezone, width, height, text }: Plot): string {
  const most = Math.max(0, ...bars.map(({ count }) => count))
  const [upper, floor] = [text * 0.6, height - text * 1.9]
  const scale = ticks(most, Math.max(2, Math.floor((floor - upper) / (text * 2.6))))
  const top = scale.at(-1)!
  const left = Math.max(...scale.map(tick => widthOf(short(tick), text))) + text * 0.8
  const [across, down] = [(width - left) / bars.length, floor - upper]
  const y = (count: number) => floor - (count / top) * down
  const grid = scale.map(tick => {
    const at = round(y(tick))
    const label = `<text class="axis" x="${round(left - text * 0.6)}" y="${round(at + text * 0.35)}" text-anchor="end">${short(tick)}</text>`
    return `<line class="grid" x1="${round(left)}" x2="${width}" y1="${at}" y2="${at}"/>${label}`
  })
  const gap = Math.min(across * 0.25, text * 0.5)
  const columns = bars.map((bar, i) => {
    if (bar.count === 0) return ''
    // The fewest are still to be seen beside very many.
    const high = Math.max(down * (bar.count / top), text * 0.12)
    const [x, wide] = [left + i * across + gap / 2, across - gap]
    const corner = Math.min(wide / 4, high, text * 0.25)
    const of = i === bars.length - 1 ? 'bar now' : 'bar'
    const said = `${moment(bar, unit, timezone)}: ${whole(bar.count)}`
    return `<path class="${of}" d="${column(x, floor, wide, high, corner)}"><title>${escaped(said)}</title></path>`
  })
  let free = 0
  const times = marks(bars, unit, timezone).flatMap(({ index, text: label }) => {
    const half = widthOf(label, text) / 2
    const middle = left + (index + 0.5) * across
    if (middle - half < free || middle + half > width) return []
    free = middle + half + text
    const tick = `<line class="grid" x1="${round(middle)}" x2="${round(middle)}" y1="${round(floor)}" y2="${round(floor + text * 0.4)}"/>`
    return `${tick}<text class="axis" x="${round(middle)}" y="${round(floor + text * 1.5)}" text-anchor="middle">${label}</text>`
  })
  const none =
    most > 0
      ? ''
      : `<text class="axis" x="${round(left + (width - left) / 2)}" y="${round(upper + down / 2)}" text-anchor="middle">no signups</text>`
  return [...grid, ...columns, ...times, none].join('')
}

/** A bar chart as an element of a page, with its title for those who do not see it. `id`: its own within the page. */
export function plot(given: Plot & { readonly id: string }): string {
  const { id, title, width, height, text } = given
  return (
    `<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"` +
    ` aria-labelledby="${id}-title ${id}-summary" font-size="${text}"><title id="${id}-title">${escaped(title)}</title>` +
    `<desc id="${id}-summary">${escaped(summary(given))}</desc>${bars(given)}</svg>`
  )
}

/** A chart in a sentence. */
export function summary({ bars, unit, timezone }: Pick<Plot, 'bars' | 'unit' | 'timezone'>): string {
  const total = bars.reduce((sum, { count }) => sum + count, 0)
  const said = `${whole(total)} ${total === 1 ? 'signup' : 'signups'} in ${bars.length} ${unit}s`
  if (total === 0) return `${said}.`
  const most = bars.reduce((best, bar) => (bar.count > best.count ? bar : best))
  return `${said}; the most, ${whole(most.count)}, on ${moment(most, unit, timezone)}.`
}

/** A rectangle with round corners above. */
function column(x: number, floor: number, wide: number, high: number, corner: number): string {
  const [c, flat, side] = [round(corner), round(wide - 2 * corner), round(high - corner)]
  return `M${round(x)} ${round(floor)}v-${side}q0-${c} ${c}-${c}h${flat}q${c} 0 ${c} ${c}v${side}z`
}

/** What text is about as wide as, in the sans-serif fonts of all systems. */
export const widthOf = (text: string, size: number): number => [...text].length * size * 0.56

export const round = (length: number): number => Math.round(length * 10) / 10

/** Text in an element or an attribute, without what XML cannot have and what would turn the order of letters. */
export const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\uFFFE\uFFFF]/gu, '')
    .replaceAll(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
