import { randomUUID } from 'node:crypto'
import type { Links } from '../confirm/token.ts'
import type { OwnDestination } from '../delivery/destination.ts'
import { escapeHtml } from '../http/html.ts'
import { type Contact, type EventKind, eventKinds, type WaitlistEvent } from '../signup/contact.ts'
import { letterOf } from './letters.ts'
import { CONCURRENCY, type MailResult, type MailServer } from './send.ts'
import type { MailSettings } from './settings.ts'
import { defuseLinks, render, WORD_JOINER } from './template.ts'

/** What a mail is about. */
interface Occasion extends Pick<WaitlistEvent, 'kind' | 'id' | 'at' | 'code'> {
  readonly contact: Pick<Contact, 'id' | 'name' | 'email' | 'createdAt'>
}

/**
 * Mails contacts a welcome, an invitation, or a request to confirm their address: at least once, and again with the same
 * Message-ID when it is unknown whether the server accepted it. `links`: called once mails are sent.
 *
 * @throws {OperatorError} when a template is wrong.
 */
export function mailDestination(settings: MailSettings, links: () => Links, server: MailServer) {
  const { templates, inviteLink, service } = settings
  const letters = new Map(eventKinds.map(kind => [kind, letterOf(kind, templates, inviteLink !== null)]))
  const defused = (text: string) => defuseLinks(text, WORD_JOINER)

  function send({ kind, id, at, contact, code }: Occasion, signal: AbortSignal): Promise<MailResult> {
    const { subject, text, html } = letters.get(kind)!
    const { name, email } = contact
    const unsubscribe = links().unsubscribe(contact)
    const link = kind === 'confirmation' ? links().confirm(contact) : code && inviteLink?.replace('{code}', code)
    const values = { name: defused(name), service: defused(service), email, code, link, unsubscribe }
    const mail = {
      // Who is invited or asked again gets another mail, which no mailbox takes for the first.
      ...{ id: `${id}_${at.getTime()}`, unsubscribe },
      to: { name: kind === 'confirmation' ? '' : values.name, address: email },
      subject: render(subject, values),
      text: render(text, values),
      html: html === null ? undefined : render(html, values, escapeHtml),
    }
    return server.send(mail, signal)
  }

  return {
    name: 'mail',
    events: settings.letters,
    repeatable: Number.POSITIVE_INFINITY,
    concurrency: CONCURRENCY,
    async deliver(event, signal) {
      const { response, ...result } = await send(event, signal)
      return result
    },
    /** Sends one with a sample name, and a code and links that no contact has. */
    sample(kind: EventKind, email: string, signal: AbortSignal): Promise<MailResult> {
      const at = new Date()
      const contact = { id: randomUUID(), name: 'Ada Lovelace', email, createdAt: at }
      const code = kind === 'invited' ? 'A'.repeat(22) : undefined
      return send({ kind, id: `check_${contact.id}`, at, contact, code }, signal)
    },
    check: server.check,
  } satisfies OwnDestination & Record<string, unknown>
}
