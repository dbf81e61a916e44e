import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Languages } from '../http/messages/languages.ts'
import type { Answer } from '../http/response.ts'
import { linkPage, type PageSettings, type Shown } from './page.ts'
import type { Addressee, Linked } from './store.ts'
import { type Purpose, readToken } from './token.ts'

/** What the routes do with the contact of a link. */
export interface LinkActions {
  readonly secret: string
  find(contact: Addressee): Promise<Linked | undefined>
  /** `before`: it had gone on already. Null: there is no such contact. */
  confirm(contact: Addressee): Promise<'now' | 'before' | null>
  /** Erases the contact, if it is there. */
  leave(contact: Addressee): Promise<void>
}

interface LinkParts extends PageSettings {
  readonly links: LinkActions
  readonly languages: Languages
  /** Logs what was thrown. */
  failed(error: unknown, reqId: number): unknown
}

type Token = NonNullable<ReturnType<typeof readToken>>

/** What is shown, and for which address. */
interface Result {
  readonly shown: Shown
  readonly email?: string | undefined
}

/** `GET /confirm` and `POST /confirm` */
export const confirmRoutes = (parts: LinkParts) =>
  linkRoutes('confirm', parts, {
    async show({ contact, hasExpired }) {
      const found = await parts.links.find(contact)
      if (found === undefined) return { shown: hasExpired ? 'expired' : 'deleted' }
      const { email, state } = found
      if (state !== 'unconfirmed') return { shown: 'confirmedBefore', email }
      return hasExpired ? { shown: 'expired' } : { shown: 'confirm', email }
    },
    async act({ contact }) {
      const confirmed = await parts.links.confirm(contact)
      if (confirmed === null) return { shown: 'deleted' }
      return { shown: confirmed === 'now' ? 'confirmed' : 'confirmedBefore' }
    },
  })

/** `GET /unsubscribe` and `POST /unsubscribe` */
export const unsubscribeRoutes = (parts: LinkParts) =>
  linkRoutes('unsubscribe', parts, {
    async show({ contact }) {
      const found = await parts.links.find(contact)
      return found === undefined ? { shown: 'left' } : { shown: 'leave', email: found.email }
    },
    async act({ contact }) {
      await parts.links.leave(contact)
      return { shown: 'left' }
    },
  })

/**
 * GET and HEAD show the truth and change nothing, since mail scanners follow links. POST acts where GET shows a button, once or
 * again: from that button, or from a mail program (RFC 8058 §3.2), whose body says nothing that the address does not.
 */
function linkRoutes(
  purpose: Purpose,
  { links, languages, failed, ...settings }: LinkParts,
  { show, act }: Readonly<Record<'show' | 'act', (token: Token) => Promise<Result>>>,
) {
  async function answer(
    request: IncomingMessage,
    reqId: number,
    resultOf: (token: Token) => Promise<Result>,
  ): Promise<Answer> {
    const page = ({ shown, email }: Result) =>
      linkPage(shown, settings, languages.of(request.headers['accept-language']), email)
    try {
      const token = readToken(purpose, tokenIn(request.url), links.secret, Date.now())
      if (token === null) return page({ shown: 'invalid' })
      return page(await resultOf(token))
    } catch (error) {
      failed(error, reqId)
      return page({ shown: 'failed' })
    }
  }

  return {
    GET: (request: IncomingMessage, _: ServerResponse, reqId: number) => answer(request, reqId, show),
    POST: (request: IncomingMessage, _: ServerResponse, reqId: number) =>
      answer(request, reqId, async token => {
        const shown = await show(token)
        if (shown.shown !== 'confirm' && shown.shown !== 'leave') return shown
        const acted = await act(token)
        return { ...acted, email: shown.email }
      }),
  }
}

const tokenIn = (url = ''): string => URL.parse(url, 'http://localhost')?.searchParams.get('token') ?? ''
