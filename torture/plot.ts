import type { Plot, Point } from './scenario.ts'

const WIDTH = 640
const HEIGHT = 280
/** Room for the labels of the axes. */
const LEFT = 64
const BELOW = 40
const ABOVE = 44
const RIGHT = 16
/** More points than this cannot be seen. */
const POINTS = 240
/** Told apart without red against green. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7']

/** A small drawing, readable as text and on any background. Both axes begin at 0. */
export function svgOf({ title, x, y, lines }: Plot): string {
  const points = lines.flatMap(({ points }) => points)
  const [right, top] = [
    roundUp(Math.max(0, ...points.map(([x]) => x))),
    roundUp(Math.max(0, ...points.map(([, y]) => y))),
  ]
  const across = (value: number) => (LEFT + (value / right) * (WIDTH - LEFT - RIGHT)).toFixed(1)
  const up = (value: number) => (HEIGHT - BELOW - (value / top) * (HEIGHT - BELOW - ABOVE)).toFixed(1)
  const steps = [0, 0.25, 0.5, 0.75, 1]
  const text = (x: number | string, y: number | string, anchor: string, said: string, more = '') =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}"${more}>${escaped(said)}</text>`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text(LEFT, 16, 'start', title, ' font-size="13" font-weight="bold"'),
    ...steps.flatMap(step => [
      `<path d="M${LEFT} ${up(step * top)}H${WIDTH - RIGHT}" stroke="#ddd"/>`,
      text(LEFT - 6, Number(up(step * top)) + 4, 'end', label(step * top)),
      text(across(step * right), HEIGHT - BELOW + 16, 'middle', label(step * right)),
    ]),
    text((LEFT + WIDTH) / 2, HEIGHT - 8, 'middle', x),
    text(14, HEIGHT / 2, 'middle', y, ` transform="rotate(-90 14 ${HEIGHT / 2})"`),
    ...lines.flatMap(({ name, points }, i) => [
      `<polyline fill="none" stroke="${colour(i)}" stroke-width="1.5" points="${thinned(points)
        .map(([x, y]) => `${across(x)},${up(y)}`)
        .join(' ')}"/>`,
      text(LEFT + 150 * i, 34, 'start', name, ` fill="${colour(i)}"`),
    ]),
    '</svg>\n',
  ].join('\n')
}

const colour = (i: number) => COLOURS[i % COLOURS.length]!
const label = (value: number) => value.toLocaleString('en', { maximumSignificantDigits: 3 })
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** 1, 2 or 5 times a power of ten. */
function roundUp(value: number): number {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= value)!
}

/** Of each stretch the highest point, so that no peak is lost. */
function thinned(points: readonly Point[]): readonly Point[] {
  const size = Math.max(1, Math.ceil(points.length / POINTS))
  const stretches = Array.from({ length: Math.ceil(points.length / size) }, (_, i) =>
    points.slice(i * size, (i + 1) * size),
  )
  return stretches.map(stretch => stretch.reduce((best, point) => (point[1] > best[1] ? point : best)))
}
