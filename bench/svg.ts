/** Plain SVG: as much as the plots need. Readable on a light and on a dark page. */

export interface Point {
  readonly x: number
  readonly y: number
}

/** Where text begins, ends or has its middle. */
export type Anchor = 'start' | 'middle' | 'end'

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
/** A tenth of a pixel is exact enough, and keeps the files small. */
const at = (value: number) => String(Number(value.toFixed(1)))

export type Ink = 'ink' | 'soft'
export type Hue = 'a' | 'b' | 'c'

export const label = (x: number, y: number, what: string, anchor: Anchor = 'start', ink: Ink | Hue = 'ink') =>
  `<text x="${at(x)}" y="${at(y)}" class="${ink} ${anchor}">${escaped(what)}</text>`

export const bar = (x: number, y: number, width: number, height: number, hue: Hue) =>
  `<rect x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}" class="fill-${hue}"/>`

export const line = (from: Point, to: Point, kind: 'grid' | 'axis' | 'spread') =>
  `<path d="M${at(from.x)} ${at(from.y)}L${at(to.x)} ${at(to.y)}" class="${kind}"/>`

export const curve = (points: readonly Point[], hue: Hue, dashed = false) =>
  `<path d="M${points.map(({ x, y }) => `${at(x)} ${at(y)}`).join('L')}" class="line-${hue}${dashed ? ' dashed' : ''}"/>`

/** What lies between the least and the most. */
export const band = (upper: readonly Point[], lower: readonly Point[], hue: Hue) =>
  `<path d="M${[...upper, ...lower.toReversed()].map(({ x, y }) => `${at(x)} ${at(y)}`).join('L')}Z" class="band-${hue}"/>`

export const dot = ({ x, y }: Point, hue: Hue) => `<circle cx="${at(x)}" cy="${at(y)}" r="3.5" class="fill-${hue}"/>`

/** From the least to the most, with a stroke at both ends. Horizontal or vertical. */
export function whisker(from: Point, to: Point): string {
  const flat = from.y === to.y
  const end = ({ x, y }: Point) =>
    flat ? line({ x, y: y - 4 }, { x, y: y + 4 }, 'spread') : line({ x: x - 4, y }, { x: x + 4, y }, 'spread')
  return line(from, to, 'spread') + end(from) + end(to)
}

/** Two hues and one between them in lightness, told apart without colour too; the second value is for dark pages. */
const hues: Record<Hue, readonly [string, string]> = {
  a: ['#1f6fc9', '#5aa2f0'],
  b: ['#d9601a', '#f09050'],
  c: ['#178a5e', '#3cc592'],
}

const paint = (dark: 0 | 1) =>
  Object.entries(hues)
    .map(([hue, pair]) => {
      const colour = pair[dark]
      return `.fill-${hue},.${hue}{fill:${colour}}.line-${hue}{stroke:${colour}}.band-${hue}{fill:${colour}}`
    })
    .join('')

const style = `
text{font:12px system-ui,sans-serif}.middle{text-anchor:middle}.end{text-anchor:end}.title{font-weight:600;font-size:14px}
path{fill:none}.line-a,.line-b,.line-c{stroke-width:2}.dashed{stroke-dasharray:5 4}
.page{fill:#fff}.ink{fill:#1b1f24}.soft{fill:#59636e}.grid{stroke:#dde2e7}.axis{stroke:#8a949e}.spread{stroke:#1b1f24}
${paint(0)}path[class^=band]{opacity:.18}
@media(prefers-color-scheme:dark){
.page{fill:#12161b}.ink{fill:#e8edf2}.soft{fill:#a3adb8}.grid{stroke:#2b333c}.axis{stroke:#77828e}.spread{stroke:#e8edf2}
${paint(1)}}
`

/** `description` says in words what is to be seen. */
export function picture(
  { width, height, title, description }: { width: number; height: number; title: string; description: string },
  parts: readonly string[],
): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title what">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="what">${escaped(description)}</desc>`,
    `<style>${style}</style>`,
    `<rect width="${width}" height="${height}" class="page"/>`,
    `<text x="16" y="26" class="ink title">${escaped(title)}</text>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

/** Maps a value to a coordinate. */
export type Scale = (value: number) => number

export const linear =
  (most: number, from: number, to: number): Scale =>
  value =>
    from + (value / most) * (to - from)

export const logarithmic =
  (least: number, most: number, from: number, to: number): Scale =>
  value =>
    from + (Math.log(Math.max(value, least) / least) / Math.log(most / least)) * (to - from)

/** Round numbers from 0 to at least the highest value, about five of them; to 1 where there is nothing to show. */
export function ticks(highest: number): readonly number[] {
  const most = highest || 1
  const rough = most / 4
  const unit = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map(each => each * unit).find(each => each >= rough)!
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => i * step)
}

/** Powers of ten that enclose the values. */
export function decades(least: number, most: number): readonly number[] {
  const from = Math.floor(Math.log10(least))
  const to = Math.ceil(Math.log10(most))
  return Array.from({ length: to - from + 1 }, (_, i) => 10 ** (from + i))
}
