import { escapeHtml, htmlPage, pageHeaders, styleSheet } from '../http/html.ts'
import type { Language } from '../http/messages/languages.ts'
import { type PageKey, pageSentences } from '../http/messages/sentences.ts'
import type { Answer } from '../http/response.ts'

const style = styleSheet(new URL('./page.css', import.meta.url))

const headers = { ...pageHeaders(style, "'self'"), 'cache-control': 'no-store', 'x-robots-tag': 'noindex' }

interface View {
  readonly status: number
  readonly heading: PageKey
  readonly text?: PageKey
  readonly button?: PageKey
  /** To leave is not what most readers want. */
  readonly isQuiet?: true
  readonly isDone?: true
}

const views = {
  confirm: { status: 200, heading: 'confirm.ask', text: 'confirm.askText', button: 'confirm.button' },
  confirmed: { status: 200, heading: 'confirm.done', text: 'confirm.doneText', isDone: true },
  confirmedBefore: { status: 200, heading: 'confirm.doneBefore', text: 'confirm.doneText', isDone: true },
  expired: { status: 410, heading: 'confirm.expired', text: 'confirm.expiredText' },
  deleted: { status: 410, heading: 'confirm.deleted', text: 'confirm.expiredText' },
  leave: {
    status: 200,
    heading: 'unsubscribe.ask',
    text: 'unsubscribe.askText',
    button: 'unsubscribe.button',
    isQuiet: true,
  },
  left: { status: 200, heading: 'unsubscribe.done', text: 'unsubscribe.doneText', isDone: true },
  invalid: { status: 404, heading: 'link.invalid', text: 'link.invalidText' },
  failed: { status: 500, heading: 'link.failed', text: 'link.failedText' },
  notFound: { status: 404, heading: 'link.notFound' },
} as const satisfies Record<string, View>

export type Shown = keyof typeof views

export interface PageSettings {
  readonly service: string
  /** The address of the owner's page. */
  readonly site: string
}

const TICK =
  '<svg class="done" viewBox="0 0 24 24" aria-hidden="true"><path d="m5 12.5 4.5 4.5L19 7.5" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>\n'

/** What a link in a mail leads to. The button posts to the address of the page. `email`: whose page it is. */
export function linkPage(
  shown: Shown,
  { service, site }: PageSettings,
  language: Language,
  email: string | null = null,
): Answer {
  const { status, heading, text, button, isQuiet, isDone } = views[shown] as View
  const translate = (key: PageKey) => language.translate(key, pageSentences[key])
  const { text: title, language: shownIn } = translate(heading)
  const html = (key: PageKey): string => {
    const { text, language } = translate(key)
    return language === shownIn
      ? escapeHtml(text)
      : `<span lang="${language.tag}" dir="auto">${escapeHtml(text)}</span>`
  }
  const main = [
    isDone && TICK,
    `<h1>${escapeHtml(title)}</h1>\n`,
    email !== null && `<p class="address"><bdi>${escapeHtml(email)}</bdi></p>\n`,
    text && `<p>${html(text)}</p>\n`,
    button && `<form method="post"><button${isQuiet ? ' class="quiet"' : ''}>${html(button)}</button></form>\n`,
  ].filter(part => typeof part === 'string')
  const page = htmlPage({
    title: `${title} · ${service}`,
    style,
    language: shownIn.tag,
    direction: shownIn.direction,
    body: `<header><bdi>${escapeHtml(service)}</bdi></header>
<main>
${main.join('')}</main>
<footer><a href="${escapeHtml(site)}">${html('link.back')}</a></footer>
`,
  })
  const type = { 'content-type': 'text/html; charset=utf-8', 'content-language': shownIn.tag, vary: 'Accept-Language' }
  return { status, headers: { ...headers, ...type }, body: page }
}
