import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/**
 * What all pages have in common: the documentation, the operator's, and those behind links in mails. None loads anything: all is
 * within it.
 */

/** A style or a script without comments and indentation. No string in it may span lines. */
export const compact = (file: URL): string =>
  readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|^\s+/gm, '')

const base = compact(new URL('./base.css', import.meta.url))

/** The base style sheet, then the page's own. */
export const styleSheet = (own: URL): string => base + compact(own)

/** What allows one inline style or script (CSP level 3 §2.3.1). */
export const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

export const colours = { brand: '#3547c8', alarm: '#c22f2f' }

export const mark = (colour: string): string =>
  `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32' aria-hidden='true'><rect width='32' height='32' rx='9' fill='${colour}'/><path d='M9 10h14M9 16h14M9 22h7' stroke='#fff' stroke-width='3' stroke-linecap='round'/></svg>`

/** The mark as an address, for the tab of a browser. */
export const icon = (colour: string): string => `data:image/svg+xml,${encodeURIComponent(mark(colour))}`
