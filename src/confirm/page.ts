import { escapeHtml, htmlPage, pageHeaders, styleSheet } from '../http/html.ts'
import type { Answer } from '../http/response.ts'
import type { Language } from '../messages/languages.ts'
import type { PageKey } from '../messages/sentences.ts'

const style = styleSheet(new URL('./page.css', import.meta.url))

const headers = {
  ...pageHeaders(style, "'self'"),
  'cache-control': 'no-store',
  'content-type': 'text/html; charset=utf-8',
  vary: 'Accept-Language',
  'x-robots-tag': 'noindex',
}

interface Content {
  readonly status: number
  readonly heading: PageKey
  readonly text?: PageKey
  readonly button?: PageKey
}

const contents = {
  confirm: { status: 200, heading: 'confirm.ask', text: 'confirm.askText', button: 'confirm.button' },
  confirmed: { status: 200, heading: 'confirm.done', text: 'confirm.doneText' },
  confirmedBefore: { status: 200, heading: 'confirm.doneBefore', text: 'confirm.doneText' },
  expired: { status: 410, heading: 'confirm.expired', text: 'confirm.expiredText' },
  deleted: { status: 410, heading: 'confirm.deleted', text: 'confirm.expiredText' },
  leave: { status: 200, heading: 'unsubscribe.ask', text: 'unsubscribe.askText', button: 'unsubscribe.button' },
  left: { status: 200, heading: 'unsubscribe.done', text: 'unsubscribe.doneText' },
  invalid: { status: 404, heading: 'link.invalid', text: 'link.invalidText' },
  failed: { status: 500, heading: 'link.failed', text: 'link.failedText' },
  notFound: { status: 404, heading: 'link.notFound' },
} as const satisfies Record<string, Content>

export type View = keyof typeof contents

export interface PageSettings {
  readonly service: string
  /** The address of the owner's page. */
  readonly site: string
}

const TICK =
  '<svg class="done" viewBox="0 0 24 24" aria-hidden="true"><path d="m5 12.5 4.5 4.5L19 7.5" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round"/></svg>'

/** What a link in a mail leads to. The button posts to the address of the page. `email`: that of the contact. */
export function linkPage(view: View, { service, site }: PageSettings, language: Language, email?: string): Answer {
  const { status, heading, text, button }: Content = contents[view]
  const html = (key: PageKey) => escapeHtml(language.sentences[key])
  const main = [
    status === 200 && button === undefined && TICK,
    `<h1>${html(heading)}</h1>`,
    email !== undefined && `<p class="address"><bdi>${escapeHtml(email)}</bdi></p>`,
    text && `<p>${html(text)}</p>`,
    button && `<form method="post"><button class="${view}">${html(button)}</button></form>`,
  ]
  const body = `<header><bdi>${escapeHtml(service)}</bdi></header>
<main>
${main.filter(Boolean).join('\n')}
</main>
<footer><a href="${escapeHtml(site)}">${html('link.back')}</a></footer>
`
  const { tag, direction } = language
  const title = `${language.sentences[heading]} · ${service}`
  return {
    status,
    headers: { ...headers, 'content-language': tag },
    body: htmlPage({ title, style, language: tag, direction, body }),
  }
}
