import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { securityHeaders } from './response.ts'

/** What the HTML pages share: the documentation, the pages behind links in mails, the operator's page. None runs a script. */

/** The one colour of form, pages and mails. On a dark page it is lighter (`page.css`). */
export const ACCENT = '#3547c8'

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Safe as the content of an element, and inside a quoted attribute. */
export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, character => entities[character]!)

const base = readFileSync(new URL('./page.css', import.meta.url), 'utf8')

/** The style of all pages, then the page's own. */
export const styleSheet = (own: URL): string => base + readFileSync(own, 'utf8')

/** What allows one inline style (CSP level 3 §2.3.1). */
export const hashSource = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The mark of the service, 32 by 32, as an SVG element. */
export const MARK = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32' aria-hidden='true'><rect width='32' height='32' rx='9' fill='${ACCENT}'/><path d='M9 10h14M9 16h14M9 22h7' stroke='#fff' stroke-width='3' stroke-linecap='round'/></svg>`

interface Page {
  readonly title: string
  readonly style: string
  /** BCP 47. */
  readonly language: string
  readonly direction: 'ltr' | 'rtl'
  /** HTML for the end of the head. */
  readonly head?: string
  /** HTML. */
  readonly body: string
}

export const htmlPage = ({ title, style, language, direction, head = '', body }: Page) =>
  `<!doctype html>
<html lang="${language}" dir="${direction}">
<head>
<meta charset="utf-8">
<title>${escapeHtml(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(MARK)}">
<style>${style}</style>
${head}</head>
<body>
${body}</body>
</html>
`

/**
 * The security headers of a page (OWASP HTTP Headers cheat sheet). It loads nothing. `formAction`: where its forms may be sent.
 */
export function pageHeaders(style: string, formAction: "'none'" | "'self'"): Readonly<Record<string, string>> {
  return {
    ...securityHeaders,
    'content-security-policy':
      `default-src 'none'; style-src ${hashSource(style)}; img-src data:; base-uri 'none'; ` +
      `form-action ${formAction}; frame-ancestors 'none'`,
    'cross-origin-opener-policy': 'same-origin',
    'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  }
}
