import { escapeHtml } from '../pages/html.ts'
import { whole } from './axis.ts'

/** HTML that is safe where an element may stand: whatever was filled in is escaped. */
export interface Html {
  readonly html: string
}

/** Text, also in a quoted attribute; HTML, which stays as it is; null for nothing. */
export type Filling = string | number | Html | readonly Html[] | null

function filled(filling: Filling): string {
  if (filling === null) return ''
  if (typeof filling === 'object') return 'html' in filling ? filling.html : filling.map(({ html }) => html).join('')
  return escapeHtml(String(filling))
}

export const html = (texts: TemplateStringsArray, ...fillings: readonly Filling[]): Html => ({
  html: String.raw({ raw: texts }, ...fillings.map(filled)),
})

/** What controls more than its own place: line breaks, escape sequences, and the direction of what follows. */
const CONTROLS = /[\p{C}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/** On one line, `longest` code points at most, of which something can be seen. */
export function bounded(text: string, longest: number): string {
  const characters = [
    ...text
      .slice(0, 8 * longest)
      .replaceAll(CONTROLS, '')
      .trim(),
  ]
  const shown = characters.length <= longest ? characters : [...characters.slice(0, longest - 1), '…']
  return shown.some(character => /[^\p{M}\p{Z}]/u.test(character)) ? shown.join('') : '(nothing to be seen)'
}

/** Words that are not ours, such as a source that anybody can type: without effect on what stands around them. */
export const words = (text: string, longest: number): Html => html`<bdi>${bounded(text, longest)}</bdi>`

const percent = new Intl.NumberFormat('en', { style: 'percent', minimumFractionDigits: 1, maximumFractionDigits: 1 })

/** "12.3%"; nothing, of nothing. */
export const share = (part: number, all: number): string => (all === 0 ? '' : percent.format(part / all))

/** "1 contact", "1,204 contacts" */
export const counted = (number: number, one: string, more: string): string =>
  `${whole(number)} ${number === 1 ? one : more}`

/** "14:05:09" */
export function clock(date: Date): Html {
  return html`<time datetime="${date.toISOString()}">${date.toLocaleTimeString('en-GB')}</time>`
}

/** "20 Nov, 14:05" */
export function moment(date: Date): Html {
  const options = { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const
  return html`<time datetime="${date.toISOString()}">${date.toLocaleString('en-GB', options)}</time>`
}

const sizes = new Intl.NumberFormat('en', { style: 'unit', unit: 'megabyte', maximumFractionDigits: 0 })

/** "512 MB" */
export const megabytes = (bytes: number): string => sizes.format(bytes / 1_000_000)
