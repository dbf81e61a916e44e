import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const parts = ['colours', 'text', 'members', 'frame', 'examples', 'print']

/** The whole style of the page, which stands in it. */
export const style = parts.map(part => readFileSync(new URL(`./style/${part}.css`, import.meta.url), 'utf8')).join('\n')

/** What a Content Security Policy allows this style by (CSP level 3 §2.3.1): the hash of what stands in the element. */
export const styleSource = `'sha256-${createHash('sha256').update(style).digest('base64')}'`
