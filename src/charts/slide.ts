import type { Stats } from '../waitlist/counts.ts'
import { short, whole } from './axis.ts'
import { bars, escaped, round, summary, widthOf } from './svg.ts'
import { clipped, plain } from './text.ts'

/** A picture of 16:9. */
const [WIDTH, HEIGHT] = [1600, 900]
const EDGE = 90
const [TEXT, SMALL] = [26, 20]
const SOURCES = 6

const STYLE = `
svg{--ink:#171b26;--muted:#566072;--line:#e4e7ee;--page:#fff;--accent:#3547c8;--now:#98a2e6;--soft:#eef0fd;color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{--ink:#e8ebf2;--muted:#9ba6b8;--line:#252c39;--page:#0d1016;--accent:#a3b0ff;--now:#5c6599;--soft:#1c2242}}
text{font-family:-apple-system,"Segoe UI",Roboto,Cantarell,"Noto Sans","Liberation Sans","DejaVu Sans",sans-serif;fill:var(--ink)}
.page{fill:var(--page)}.axis,.muted{fill:var(--muted)}.axis,.figure{font-variant-numeric:tabular-nums}.grid{stroke:var(--line)}
.bar,.accent{fill:var(--accent)}.now{fill:var(--now)}.track{fill:var(--soft)}.heading{font-weight:600}.figure{font-weight:700;letter-spacing:-.02em}
`

/** The list as a picture for a slide: light or dark, as its reader likes; nothing in it is loaded from elsewhere. */
export function slide(service: string, stats: Stats): string {
  const { at, timezone, total, today, last7Days, last30Days, perDay, perHour, sources } = stats
  const days = { bars: perDay, unit: 'day', timezone } as const
  const hours = { bars: perHour, unit: 'hour', timezone } as const
  const when = new Intl.DateTimeFormat('en-GB', { timeZone: timezone, dateStyle: 'long', timeStyle: 'short' }).format(
    at,
  )
  const figures = [
    [today, 'today'],
    [last7Days, 'in 7 days'],
    [last30Days, 'in 30 days'],
  ] as const
  const shown = sources.slice(0, SOURCES)
  const [top, below, gap] = [342, 578, 70]
  const right = shown.length === 0 ? 0 : 460
  const wide = WIDTH - 2 * EDGE
  const half = right === 0 ? wide : wide - right - gap
  const seen = escaped(
    `${whole(total)} signed up. ${figures.map(([count, span]) => `${whole(count)} ${span}`).join(', ')}. ` +
      `By day: ${summary(days)} By hour: ${summary(hours)}`,
  )
  const name = escaped(fitted(service, 34, wide * 0.55))
  // Thousands of thousands need room, and the three figures beside them do too.
  const large = Math.min(120, (wide * 0.42) / (widthOf(whole(total), 1) * 1.05))
  const columns = figures.map(([count, span], i) => {
    const x = EDGE + wide * 0.5 + (i * (wide * 0.5)) / 3 + 24
    return (
      `<text class="figure" x="${round(x)}" y="218" font-size="52">${short(count)}</text>` +
      `<text class="muted" x="${round(x)}" y="260" font-size="${TEXT}">${span}</text>`
    )
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title summary">
<title id="title">${escaped(service)}: ${whole(total)} signed up</title>
<desc id="summary">${seen}</desc>
<style>${STYLE}</style>
<rect class="page" width="${WIDTH}" height="${HEIGHT}"/>
<text class="heading" x="${EDGE}" y="84" font-size="34">${name}</text>
<text class="muted" x="${WIDTH - EDGE}" y="84" font-size="${SMALL}" text-anchor="end">${escaped(when)}, ${escaped(timezone)}</text>
<text class="figure accent" x="${EDGE}" y="218" font-size="${round(large)}">${whole(total)}</text>
<text class="muted" x="${EDGE}" y="260" font-size="${TEXT}">signed up</text>
${columns.join('\n')}
${heading('Signups per day, the last 30 days', EDGE, top - 26)}
<g transform="translate(${EDGE} ${top})" font-size="${SMALL}">${bars({ ...days, title: '', width: wide, height: below - top - 20, text: SMALL })}</g>
${heading('Signups per hour, the last 48 hours', EDGE, below + 44)}
<g transform="translate(${EDGE} ${below + 66})" font-size="${SMALL}">${bars({ ...hours, title: '', width: half, height: HEIGHT - below - 66 - 46, text: SMALL })}</g>
${shown.length === 0 ? '' : sourcesOf(stats, shown, WIDTH - EDGE - right, below + 44, right)}
</svg>
`
}

const heading = (text: string, x: number, y: number): string =>
  `<text class="heading" x="${x}" y="${y}" font-size="${TEXT - 2}">${text}</text>`

/** Each with its share of all contacts whose source is known. */
function sourcesOf({ sourced }: Stats, sources: Stats['sources'], x: number, y: number, wide: number): string {
  const most = sources[0]!.count
  const rows = sources.map(({ source, count }, i) => {
    const line = y + 46 + i * 34
    const number = short(count)
    const room = wide * 0.44
    const bar = wide - room - widthOf('999.9K', SMALL) - 12
    return (
      `<text x="${x}" y="${line}" font-size="${SMALL}">${escaped(fitted(source, SMALL, room - 20))}</text>` +
      `<rect class="track" x="${round(x + room)}" y="${line - 14}" width="${round(bar)}" height="14" rx="4"/>` +
      `<rect class="accent" x="${round(x + room)}" y="${line - 14}" width="${round(Math.max(4, (bar * count) / most))}" height="14" rx="4"/>` +
      `<text class="axis" x="${x + wide}" y="${line}" font-size="${SMALL}" text-anchor="end">${number}</text>`
    )
  })
  return `${heading(`Sources, of ${whole(sourced)} known`, x, y)}\n${rows.join('\n')}`
}

const fitted = (text: string, size: number, room: number): string =>
  clipped(plain(text), Math.floor(room / widthOf('m', size)))
