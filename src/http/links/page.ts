import type { Purpose } from '../../links/links.ts'
import { colours, hashSource, icon, styleSheet } from '../../pages/frame.ts'
import { escapeHtml } from '../../pages/html.ts'
import { type Language, say } from '../messages/languages.ts'
import { type LinkKey, ofLinks } from '../messages/links.ts'
import { type Answer, contentFields, fieldList, securityFields } from '../response.ts'

const style = styleSheet(new URL('./page.css', import.meta.url))

const fields = {
  ...securityFields,
  'content-security-policy': [
    "default-src 'none'",
    `style-src ${hashSource(style)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; '),
  'cache-control': 'no-store',
  'x-robots-tag': 'noindex',
}

interface View {
  readonly status: number
  readonly heading: LinkKey
  readonly text: LinkKey
  readonly button?: LinkKey
  /** What is marked as done. */
  readonly isDone?: true
}

const both = {
  invalid: { status: 404, heading: 'link.invalid', text: 'link.invalidText' },
  limited: { status: 429, heading: 'link.failed', text: 'link.failedText' },
  failed: { status: 500, heading: 'link.failed', text: 'link.failedText' },
} as const satisfies Record<string, View>

/** What each page can say, by the purpose of its link. */
const views = {
  confirm: {
    ...both,
    asks: { status: 200, heading: 'confirm.ask', text: 'confirm.askText', button: 'confirm.button' },
    done: { status: 200, heading: 'confirm.done', text: 'confirm.doneText', isDone: true },
    doneBefore: { status: 200, heading: 'confirm.doneBefore', text: 'confirm.doneText', isDone: true },
    expired: { status: 410, heading: 'confirm.expired', text: 'confirm.expiredText' },
  },
  unsubscribe: {
    ...both,
    asks: { status: 200, heading: 'unsubscribe.ask', text: 'unsubscribe.askText', button: 'unsubscribe.button' },
    done: { status: 200, heading: 'unsubscribe.done', text: 'unsubscribe.doneText', isDone: true },
  },
} as const satisfies Record<Purpose, Record<string, View>>

export type Shown<For extends Purpose> = keyof (typeof views)[For]

const TICK =
  '<div class="badge well"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="m5 12.5 4.5 4.5L19 7.5" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg></div>\n'

/** The page behind a link in a mail. It loads nothing, has no script, and posts to its own address. */
export function linkPage<For extends Purpose>(
  purpose: For,
  shown: Shown<For>,
  service: string,
  language: Language,
): Answer {
  const { status, heading, text, button, isDone } = views[purpose][shown] as View
  const told = (key: LinkKey) => say(language, { key }, ofLinks[key])
  const { sentence: title, is } = told(heading)
  const html = (key: LinkKey): string => {
    const { sentence, is: spoken } = told(key)
    return spoken === is ? escapeHtml(sentence) : `<span lang="${spoken.tag}" dir="auto">${escapeHtml(sentence)}</span>`
  }
  const form = button === undefined ? '' : `<form method="post"><button>${html(button)}</button></form>\n`
  const body = Buffer.from(`<!doctype html>
<html lang="${is.tag}" dir="${is.direction}">
<head>
<meta charset="utf-8">
<title>${escapeHtml(`${title} · ${service}`)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="${icon(colours.brand)}">
<style>${style}</style>
</head>
<body>
<header><bdi>${escapeHtml(service)}</bdi></header>
<main>
<div class="card">
${isDone ? TICK : ''}<h1>${escapeHtml(title)}</h1>
<p>${html(text)}</p>
${form}</div>
</main>
</body>
</html>
`)
  return {
    status,
    fields: [...fieldList({ ...fields, ...is.fields }), ...contentFields('text/html; charset=utf-8', body.length)],
    body,
  }
}
