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
  },
} as const
type Theme = { readonly [name in keyof (typeof themes)['light']]: string }

const sans = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
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

/** A landing page beside a terminal: what a visitor sees, and what the owner of the list does. */
function product(theme: Theme): string {
  const { surface, raised, edge, ink, quiet, accent, onAccent, ground, card, line } = theme
  const dots = (x: number) => [0, 1, 2].map(i => `<circle cx="${x + i * 16}" cy="20" r="5" fill="${edge}"/>`)
  const days = [1, 1, 2, 1, 1, 0, 0, 1, 2, 3, 4, 5, 4, 6, 8, 7, 9, 11, 10, 13, 12, 16, 19, 17, 22, 26, 24, 31, 35, 37]
  const inLast = (count: number) => days.slice(-count).reduce((sum, signups) => sum + signups)
  const chart = days.map((signups, i) => {
    const height = signups * 2.2
    return `<rect x="${460 + i * 16}" y="${270 - height}" width="11" height="${height}" rx="1.5" fill="${accent}"/>`
  })
  const output = (y: number, colour: string, text: string, column = 0) =>
    words(438 + column * 7.2, y, colour, text, { font: mono, size: 12 })
  const typed = (y: number, command: string) => [output(y, accent, '$'), output(y, ink, command, 2)]
  const field = (y: number, label: string, value: string) => [
    words(44, y, ink, label, { weight: 600 }),
    box(44, y + 8, 312, 38, card, line, 7),
    words(58, y + 32, ink, value, { size: 15 }),
  ]
  const columns = [0, 22, 30, 44, 63]
  const people = [
    ['2026-11-22T09:31:07Z', 'listed', 'Ada Lovelace', 'ada@example.com'],
    ['2026-11-22T09:30:42Z', 'listed', 'Grace Hopper', 'grace@example.com'],
    ['2026-11-22T09:28:41Z', 'listed', 'Alan Turing', 'alan@example.org'],
  ]
  return picture(
    960,
    480,
    'Waitlist: a form on your page, the list in your hands',
    'On the left the landing page of a product, with a form that Ada Lovelace has filled in. On the right a terminal. The command stats shows a chart of signups that rises; the command list shows the newest three, Ada Lovelace first.',
    [
      box(0, 0, 400, 480, ground, edge, 12),
      `<path d="M1 40V12.5a12 12 0 0 1 12-11.5h374a12 12 0 0 1 12 11.5V40z" fill="${raised}"/>`,
      ...dots(22),
      box(90, 8, 220, 24, surface, edge, 12),
      words(200, 25, quiet, 'example.com', { size: 12, anchor: 'middle' }),
      `<path transform="translate(26 58) scale(.8)" d="M16 27V13m0 5c-6 0-9-4-9-10 6 0 9 4 9 10Zm0-3c0-5 3-7 9-8 0 6-3 8-9 8Z" fill="none" stroke="${accent}" stroke-width="2.5" stroke-linejoin="round" stroke-linecap="round"/>`,
      words(58, 77, ink, 'Sorrel', { size: 15, weight: 700 }),
      words(28, 124, ink, 'Know what to', { size: 30, weight: 700 }),
      words(28, 158, ink, 'sow this week.', { size: 30, weight: 700 }),
      words(28, 188, quiet, 'Your last frost and your seed box,', { size: 15 }),
      words(28, 208, quiet, 'in one short list every Monday.', { size: 15 }),
      box(28, 228, 344, 228, card, edge, 14),
      ...field(258, 'Name', 'Ada Lovelace'),
      ...field(328, 'Email', 'ada@example.com'),
      `<rect x="44" y="394" width="312" height="42" rx="7" fill="${accent}"/>`,
      words(200, 420, onAccent, 'Join the waitlist', { size: 15, weight: 600, anchor: 'middle' }),
      box(420, 0, 540, 480, surface, edge, 12),
      ...dots(442),
      ...typed(78, 'npm run -s waitlist stats'),
      output(110, ink, `${inLast(30)} signed up`),
      output(132, quiet, `${inLast(1)} today   ${inLast(7)} in 7 days   ${inLast(30)} in 30 days`),
      output(166, quiet, 'Signups per day, the last 30 days'),
      ...chart,
      `<path d="M438 270.5h504" stroke="${edge}"/>`,
      output(292, quiet, '24 Oct', 3),
      output(292, quiet, '22 Nov', 62),
      ...typed(346, 'npm run -s waitlist -- list --limit 3'),
      ...['signed up', 'state', 'name', 'address', 'source'].map((heading, i) =>
        output(378, quiet, heading, columns[i]),
      ),
      ...people.flatMap((person, row) => person.map((cell, i) => output(402 + row * 22, ink, cell, columns[i]))),
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
