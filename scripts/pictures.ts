import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/**
 * Draws the pictures of the documents, each for light and for dark pages, from one description: `node scripts/pictures.ts`.
 * Text stays text, so that a picture is small and can be read aloud; the fonts are those of the reader.
 */

const themes = {
  light: {
    surface: '#ffffff',
    raised: '#f6f7f9',
    edge: '#d5d9e0',
    ink: '#1a1d23',
    quiet: '#5a6270',
    accent: '#1f6b45',
    onAccent: '#ffffff',
    ground: '#f6f3ea',
    card: '#fffdf8',
    line: '#8b9188',
    group: '#eef4ef',
    bar: '#3547c8',
    green: '#0b6b45',
  },
  dark: {
    surface: '#14171c',
    raised: '#1d2128',
    edge: '#3a414c',
    ink: '#e8eaee',
    quiet: '#a3abb8',
    accent: '#8fd6a8',
    onAccent: '#0b2013',
    ground: '#101711',
    card: '#172019',
    line: '#7d857c',
    group: '#161d19',
    bar: '#a3b0ff',
    green: '#71d6a5',
  },
} as const
type Theme = { readonly [name in keyof (typeof themes)['light']]: string }

const sans = "-apple-system, 'Segoe UI', Roboto, Cantarell, 'Noto Sans', 'Liberation Sans', 'DejaVu Sans', sans-serif"
const serif =
  "'Iowan Old Style', 'Palatino Linotype', Palatino, P052, 'Noto Serif', 'Liberation Serif', 'DejaVu Serif', serif"
const mono = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

interface Words {
  readonly size?: number
  readonly weight?: number
  readonly font?: string
  readonly anchor?: 'start' | 'middle' | 'end'
}

function words(x: number, y: number, colour: string, text: string, of: Words = {}): string {
  const { size = 14, weight = 400, font = sans, anchor = 'start' } = of
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
  return `<text x="${x}" y="${y}" font-family="${font}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}" fill="${colour}" xml:space="preserve">${escaped}</text>`
}

function box(x: number, y: number, width: number, height: number, fill: string, edge: string, radius = 8): string {
  return `<rect x="${x + 0.5}" y="${y + 0.5}" width="${width - 1}" height="${height - 1}" rx="${radius}" fill="${fill}" stroke="${edge}"/>`
}

const picture = (width: number, height: number, title: string, description: string, lines: readonly string[]): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title description">`,
    `<title id="title">${title}</title>`,
    `<desc id="description">${description}</desc>`,
    ...lines,
    '</svg>',
    '',
  ].join('\n')

/**
 * What moves does so once, in five seconds (WCAG 2.2, 2.2.2). Where nothing moves, the end is seen. Percents are of the whole time.
 */
const play = `<style>
@media (prefers-reduced-motion: no-preference) {
  .play { animation: 5s }
  .form, .before { animation-name: leave }
  .done, .after { animation-name: come }
  .tick { stroke-dasharray: 40; animation-name: tick }
  .name { animation-name: name; animation-timing-function: steps(3) }
  .email { animation-name: email; animation-timing-function: steps(15) }
  .press { animation-name: press }
  @keyframes leave { from, 56% { opacity: 1 } 58% { opacity: 0 } }
  @keyframes come { from, 56% { opacity: 0 } 62% { opacity: 1 } }
  @keyframes tick { from, 60% { stroke-dashoffset: 40 } 70% { stroke-dashoffset: 0 } }
  @keyframes name { from { clip-path: inset(0 100% 0 0) } 16%, to { clip-path: inset(0) } }
  @keyframes email { from, 20% { clip-path: inset(0 100% 0 0) } 40%, to { clip-path: inset(0) } }
  @keyframes press { from, 46% { opacity: 1 } 49% { opacity: .6 } 52%, to { opacity: 1 } }
}
</style>`

/** What a visitor sees, and below it what the owner of the list sees. It is read on phones: no letter is under 16 of 560. */
function product(theme: Theme): string {
  const { surface, raised, edge, ink, quiet, accent, onAccent, ground, card, line, bar, green } = theme
  const days = [3, 4, 3, 5, 4, 6, 5, 8, 7, 9, 8, 11, 13, 12, 15, 17, 20, 22, 26, 38]
  const chart = days.map((signups, i) => {
    const height = signups * 3.4
    return `<rect x="${262 + i * 13.5}" y="${516 - height}" width="9.5" height="${height}" rx="1.5" fill="${bar}"/>`
  })
  const field = (y: number, label: string, value: string) => [
    words(278, y, ink, label, { size: 16, weight: 600 }),
    box(278, y + 8, 244, 38, card, line, 7),
    `<g class="play ${label.toLowerCase()}">${words(290, y + 33, ink, value, { size: 17 })}</g>`,
  ]
  const centred = (y: number, colour: string, text: string, of: Words = {}) =>
    words(400, y, colour, text, { size: 16, anchor: 'middle', ...of })
  return picture(
    560,
    560,
    'Waitlist: a form on your page, the list in your hands',
    'Above, the landing page of a product: Ada fills in its form and is thanked by name: she is on the waitlist. Below, the page of its owner: 1,205 on the list, 38 today, 12 more than yesterday, and signups that rise from day to day.',
    [
      play,
      box(0, 0, 560, 300, ground, edge, 14),
      `<path transform="translate(22 24)" d="M16 27V13m0 5c-6 0-9-4-9-10 6 0 9 4 9 10Zm0-3c0-5 3-7 9-8 0 6-3 8-9 8Z" fill="none" stroke="${accent}" stroke-width="2.5" stroke-linejoin="round" stroke-linecap="round"/>`,
      words(58, 50, ink, 'Sorrel', { size: 20, weight: 700, font: serif }),
      ...['Know what', 'to sow', 'this week.'].map((text, i) =>
        words(28, 122 + i * 38, ink, text, { size: 32, weight: 700, font: serif }),
      ),
      words(28, 246, quiet, 'One short list,', { size: 17 }),
      words(28, 268, quiet, 'every Monday.', { size: 17 }),
      box(256, 22, 288, 256, card, edge, 14),
      '<g class="play form" opacity="0">',
      ...field(60, 'Name', 'Ada'),
      ...field(136, 'Email', 'ada@example.com'),
      `<g class="play press"><rect x="278" y="206" width="244" height="46" rx="7" fill="${accent}"/>${centred(235, onAccent, 'Join the waitlist', { size: 17, weight: 600 })}</g>`,
      '</g>',
      '<g class="play done">',
      `<circle cx="400" cy="84" r="28" fill="${accent}"/>`,
      `<path class="play tick" d="m389 85 8 8 15-17" fill="none" stroke="${onAccent}" stroke-width="4"/>`,
      centred(148, ink, 'Thank you, Ada.', { size: 24, weight: 700, font: serif }),
      centred(180, ink, 'You are on the waitlist.'),
      centred(208, ink, 'We will write to'),
      centred(230, ink, 'ada@example.com'),
      centred(252, ink, 'when it is your turn.'),
      '</g>',
      box(0, 316, 560, 244, raised, edge, 14),
      box(16, 332, 216, 212, surface, edge, 10),
      words(32, 362, ink, 'On the list', { size: 17, weight: 600 }),
      `<g class="play before" opacity="0">${words(30, 424, ink, '1,204', { size: 60, weight: 700 })}</g>`,
      `<g class="play after">${words(30, 424, ink, '1,205', { size: 60, weight: 700 })}</g>`,
      words(32, 462, quiet, 'Today', { size: 16 }),
      `<g class="play before" opacity="0">${words(32, 494, ink, '37', { size: 26, weight: 700 })}</g>`,
      `<g class="play after">${words(32, 494, ink, '38', { size: 26, weight: 700 })}</g>`,
      words(32, 524, green, '+12 on yesterday', { size: 16 }),
      box(248, 332, 296, 212, surface, edge, 10),
      words(264, 362, ink, 'Signups per day', { size: 17, weight: 600 }),
      `<path d="M262 516.5h268" stroke="${edge}"/>`,
      ...chart,
    ],
  )
}

/** The parts of the program, named as the folders of `src` are, and what is outside it. */
function architecture(theme: Theme): string {
  const { surface, raised, edge, ink, quiet, accent, group } = theme
  const part = (x: number, y: number, width: number, height: number, name: string, ...about: string[]) => [
    box(x, y, width, height, surface, accent),
    words(x + width / 2, y + 26, ink, name, { font: mono, size: 15, weight: 600, anchor: 'middle' }),
    ...about.map((line, i) => words(x + width / 2, y + 47 + i * 18, quiet, line, { size: 13, anchor: 'middle' })),
  ]
  const outside = (x: number, y: number, width: number, height: number, ...lines: string[]) => [
    box(x, y, width, height, raised, edge),
    ...lines.map((line, i) =>
      words(x + width / 2, y + height / 2 + 5 + (i - (lines.length - 1) / 2) * 20, ink, line, { anchor: 'middle' }),
    ),
  ]
  const arrow = (path: string) =>
    `<path d="${path}" fill="none" stroke="${quiet}" stroke-width="1.5" marker-end="url(#head)"/>`
  const label = (x: number, y: number, text: string, anchor: Words['anchor'] = 'middle') =>
    words(x, y, quiet, text, { size: 12, anchor })
  return picture(
    960,
    420,
    'How Waitlist is built',
    'A landing page sends a name and an address to http, which asks the limiters and hands the signup to waitlist, the rules. Waitlist commits the contact and its event to the stores, SQLite or PostgreSQL, and then hands the contact to providers and the event to destinations, which call the email tool, webhooks, mail servers and chats. The operator uses the cli, which reads the stores, and the admin page.',
    [
      `<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="${quiet}"/></marker></defs>`,
      `<rect x="180" y="20" width="600" height="380" rx="14" fill="${group}"/>`,
      words(200, 48, quiet, 'Waitlist', { size: 13, weight: 600 }),
      ...outside(10, 80, 130, 70, 'landing page'),
      ...outside(10, 310, 130, 70, 'you'),
      ...part(204, 80, 150, 70, 'http', 'checks and answers'),
      ...part(204, 190, 150, 70, 'limiters', 'memory or Redis'),
      ...part(204, 310, 150, 70, 'cli, admin', 'commands, a page'),
      ...part(
        414,
        80,
        150,
        180,
        'waitlist',
        'join',
        'hand over',
        'deliver, retry',
        '',
        'the rules: imports',
        'nothing',
      ),
      ...part(414, 310, 150, 70, 'stores', 'SQLite, PostgreSQL'),
      ...part(614, 80, 146, 70, 'providers', 'fourteen tools'),
      ...part(614, 190, 146, 70, 'destinations', 'told of an event'),
      ...outside(820, 80, 130, 70, 'email tool'),
      ...outside(820, 190, 130, 70, 'webhook,', 'mail, chat'),
      arrow('M140 115h62'),
      label(171, 105, 'signup'),
      arrow('M279 150v38'),
      arrow('M354 115h58'),
      arrow('M489 260v48'),
      label(499, 282, 'contact and event,', 'start'),
      label(499, 298, 'one commit, synced', 'start'),
      arrow('M564 115h48'),
      arrow('M564 225h48'),
      arrow('M760 115h58'),
      arrow('M760 225h58'),
      arrow('M140 345h62'),
      arrow('M354 345h58'),
    ],
  )
}

const pictures = { waitlist: product, architecture }

/** Each picture by its file name. */
export const drawn: ReadonlyMap<string, string> = new Map(
  Object.entries(pictures).flatMap(([name, draw]) =>
    Object.entries(themes).map(([scheme, theme]) => [`${name}.${scheme}.svg`, draw(theme)] as const),
  ),
)

if (import.meta.main) {
  const folder = fileURLToPath(new URL('../docs/pictures/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  for (const [file, svg] of drawn) writeFileSync(folder + file, svg)
}
