import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Addressee } from '../../confirm/store.ts'
import { type Purpose, readToken } from '../../links/links.ts'
import { skipBody } from '../body.ts'
import type { HttpParts, HttpSettings, LinkParts } from '../context.ts'
import { type Refusal, refuse } from '../errors.ts'
import { linkPage, type Shown } from '../links/page.ts'
import type { Languages } from '../messages/languages.ts'
import { type Answer, withFields } from '../response.ts'

interface Parts extends Pick<HttpParts, 'limiter'> {
  readonly links: LinkParts
  readonly languages: Languages
  /** As of a signup. */
  failed(error: unknown, reqId: number): Refusal
}

type Act<For extends Purpose> = (contact: Addressee) => Promise<Shown<For>>

/** `POST /confirm` */
export const confirmRoute = (settings: Pick<HttpSettings, 'service'>, parts: Parts) =>
  linkRoute('confirm', settings, parts, async contact => {
    const confirmed = await parts.links.confirm(contact)
    return confirmed === null ? 'expired' : confirmed === 'now' ? 'done' : 'doneBefore'
  })

/** `POST /unsubscribe`: somebody who was erased before has left, too. */
export const unsubscribeRoute = (settings: Pick<HttpSettings, 'service'>, parts: Parts) =>
  linkRoute('unsubscribe', settings, parts, async ({ email }) => {
    await parts.links.leave(email)
    return 'done'
  })

/**
 * The page behind a link in a mail. GET and HEAD change nothing and do not ask the store, since mail scanners follow links.
 * POST acts, once or again: from the button of that page, or from a mail program (RFC 8058 §3.2), whose body says nothing
 * that the address does not.
 */
function linkRoute<For extends Purpose>(
  purpose: For,
  { service }: Pick<HttpSettings, 'service'>,
  { links, limiter, languages, failed }: Parts,
  act: Act<For>,
) {
  async function answer(
    request: IncomingMessage,
    reqId: number,
    use: (contact: Addressee) => Shown<For> | Refusal | Promise<Shown<For> | Refusal>,
  ): Promise<Answer> {
    const page = (shown: Shown<For>) =>
      linkPage(purpose, shown, service, languages.of(request.headers['accept-language']))
    try {
      const read = readToken(purpose, tokenIn(request.url), links.secret, Date.now())
      if (read.is !== 'good') return page(read.is as Shown<For>)
      if (request.method === 'POST') {
        // Mail providers post for many from few addresses, so a link is counted by its contact.
        const { admitted, seconds } = await limiter.take(`${purpose} ${read.contact.id}`)
        if (!admitted) return withFields(page('limited'), ['retry-after', String(seconds)])
      }
      const used = await use(read.contact)
      return typeof used === 'object' ? refuse(used) : page(used)
    } catch (error) {
      failed(error, reqId)
      return page('failed')
    }
  }

  return {
    GET: (request: IncomingMessage, _: ServerResponse, reqId: number) => answer(request, reqId, () => 'asks'),
    POST: (request: IncomingMessage, response: ServerResponse, reqId: number) =>
      answer(request, reqId, async contact => (await skipBody(request, response)) ?? act(contact)),
  }
}

const tokenIn = (url = ''): string => URL.parse(url, 'http://localhost')?.searchParams.get('token') ?? ''
