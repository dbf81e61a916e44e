import type { Bar } from '../waitlist/alerts/counts.ts'
import { marks, moment, short, ticks, type Unit, whole } from './axis.ts'
import { type Html, html } from './html.ts'

export interface Plot {
  /** Its own within the page. */
  readonly id: string
  /** What it shows, also for those who do not see it: "Signups per hour". */
  readonly title: string
  /** In ascending order; the last one is under way. */
  readonly bars: readonly Bar[]
  readonly unit: Unit
  /** In units of the picture, in which letters are `text` high. */
  readonly width: number
  readonly height: number
  readonly text: number
}

/**
 * A bar chart, with its title and a summary for those who do not see it. The page styles the classes `bar` (the last one is
 * `bar now`), `grid` (lines) and `axis` (text). Pointing at a bar tells its number.
 */
export function plot({ id, title, bars, unit, width, height, text }: Plot): Html {
  const most = Math.max(0, ...bars.map(({ count }) => count))
  const [upper, floor] = [text * 0.6, height - text * 1.9]
  const scale = ticks(most, Math.max(2, Math.floor((floor - upper) / (text * 2.6))))
  const top = scale.at(-1)!
  const left = Math.max(...scale.map(tick => widthOf(short(tick), text))) + text * 0.8
  const [across, down] = [(width - left) / bars.length, floor - upper]
  const y = (count: number) => floor - (count / top) * down
  const grid = scale.map(tick => {
    const at = round(y(tick))
    const label = html`<text class="axis" x="${round(left - text * 0.6)}" y="${round(at + text * 0.35)}" text-anchor="end">${short(tick)}</text>`
    return html`<line class="grid" x1="${round(left)}" x2="${width}" y1="${at}" y2="${at}"/>${label}`
  })
  const gap = Math.min(across * 0.25, text * 0.5)
  const columns = bars.map((bar, i) => {
    if (bar.count === 0) return html``
    // The fewest are still to be seen beside very many.
    const high = Math.max(down * (bar.count / top), text * 0.12)
    const [x, wide] = [left + i * across + gap / 2, across - gap]
    const corner = Math.min(wide / 4, high, text * 0.25)
    const of = i === bars.length - 1 ? 'bar now' : 'bar'
    const said = `${moment(bar, unit)}: ${whole(bar.count)}`
    return html`<path class="${of}" d="${column(x, floor, wide, high, corner)}"><title>${said}</title></path>`
  })
  let free = 0
  const times = marks(bars, unit).flatMap(({ index, text: label }) => {
    const half = widthOf(label, text) / 2
    const middle = left + (index + 0.5) * across
    if (middle - half < free || middle + half > width) return []
    free = middle + half + text
    const tick = html`<line class="grid" x1="${round(middle)}" x2="${round(middle)}" y1="${round(floor)}" y2="${round(floor + text * 0.4)}"/>`
    return html`${tick}<text class="axis" x="${round(middle)}" y="${round(floor + text * 1.5)}" text-anchor="middle">${label}</text>`
  })
  const none =
    most > 0
      ? null
      : html`<text class="axis" x="${round(left + (width - left) / 2)}" y="${round(upper + down / 2)}" text-anchor="middle">no signups</text>`
  return html`<svg class="plot" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-summary" font-size="${text}"><title id="${id}-title">${title}</title><desc id="${id}-summary">${summary(bars, unit)}</desc>${grid}${columns}${times}${none}</svg>`
}

/** A chart in a sentence. */
function summary(bars: readonly Bar[], unit: Unit): string {
  const total = bars.reduce((sum, { count }) => sum + count, 0)
  const said = `${whole(total)} ${total === 1 ? 'signup' : 'signups'} in ${bars.length} ${unit}s`
  if (total === 0) return `${said}.`
  const most = bars.reduce((best, bar) => (bar.count > best.count ? bar : best))
  return `${said}; the most, ${whole(most.count)}, on ${moment(most, unit)}.`
}

/** A rectangle with round corners above. */
function column(x: number, floor: number, wide: number, high: number, corner: number): string {
  const [c, flat, side] = [round(corner), round(wide - 2 * corner), round(high - corner)]
  return `M${round(x)} ${round(floor)}v-${side}q0-${c} ${c}-${c}h${flat}q${c} 0 ${c} ${c}v${side}z`
}

/** What text is about as wide as, in the sans-serif fonts of all systems. */
const widthOf = (text: string, size: number): number => [...text].length * size * 0.56

const round = (length: number): number => Math.round(length * 10) / 10
