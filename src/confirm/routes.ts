import type { IncomingMessage } from 'node:http'
import type { Resource, Route } from '../http/router.ts'
import type { Languages } from '../messages/languages.ts'
import { linkPage, type PageSettings, type View } from './page.ts'
import type { Addressee, Linked } from './store.ts'
import { type Purpose, readToken } from './token.ts'

/** What the routes do with the contact of a link. */
export interface LinkActions {
  readonly secret: string
  find(contact: Addressee): Promise<Linked | undefined>
  /** `before`: it was confirmed already. Null: there is no such contact. */
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

/** What a link shows as long as nobody presses the button. */
const views: Readonly<Record<Purpose, (contact: Linked | undefined, hasExpired: boolean) => View>> = {
  confirm(contact, hasExpired) {
    if (contact !== undefined && contact.state !== 'unconfirmed') return 'confirmedBefore'
    if (hasExpired) return 'expired'
    return contact === undefined ? 'deleted' : 'confirm'
  },
  unsubscribe: contact => (contact === undefined ? 'left' : 'leave'),
}

/**
 * `/confirm` or `/unsubscribe`. GET and HEAD change nothing, since mail scanners follow links. POST does what GET shows a
 * button for. It comes from that button, or from a mail program (RFC 8058 §3.2), whose body says nothing new.
 */
export function linkRoutes(purpose: Purpose, { links, languages, failed, ...settings }: LinkParts): Resource {
  async function open({ url, method }: IncomingMessage): Promise<{ readonly view: View; readonly email?: string }> {
    const text = URL.parse(url!, 'http://localhost')?.searchParams.get('token') ?? ''
    const token = readToken(purpose, text, links.secret, Date.now())
    if (token === null) return { view: 'invalid' }
    const contact = await links.find(token.contact)
    const view = views[purpose](contact, token.hasExpired)
    if (contact === undefined) return { view }
    const { email } = contact
    if (method === 'POST' && view === 'leave') {
      await links.leave(token.contact)
      return { view: 'left', email }
    }
    if (method !== 'POST' || view !== 'confirm') return { view, email }
    const confirmed = await links.confirm(token.contact)
    if (confirmed === null) return { view: 'deleted' }
    return { view: confirmed === 'now' ? 'confirmed' : 'confirmedBefore', email }
  }

  const route: Route = async (request, _, reqId) => {
    const { view, email } = await open(request).catch(error => {
      failed(error, reqId)
      return { view: 'failed', email: undefined } as const
    })
    return linkPage(view, settings, languages.of(request.headers['accept-language']), email)
  }
  return { GET: route, POST: route }
}
