import { randomUUID } from 'node:crypto'
import type { Links } from '../confirm/token.ts'
import { CODE_LENGTH, type EventKind } from '../signup/contact.ts'
import type { OwnDestination } from '../waitlist/ports/destination.ts'
import { mailWriter, type Recipient } from './mail-message.ts'
import { CONCURRENCY, type MailResult, type MailServer, mailServer, TIMEOUT, type Turn } from './mail-server.ts'
import type { MailSettings } from './mail-settings.ts'

export interface MailDestination extends OwnDestination {
  /** Sends one mail with a sample name and a sample code. Never rejects. */
  try(kind: EventKind, email: string, signal: AbortSignal): Promise<MailResult>
}

const TURN: Turn = { rank: 'backlog', longest: 5_000 }

/**
 * Sends each new contact a welcome mail, and each invited one an invitation (RFC 5321, RFC 5322). A server cannot recognise a
 * repeated mail, so one whose end was sent and not answered is never sent again. `links`: what the mails have in them, as of
 * when the first is sent; null: none. `server`: where other mails are sent, too.
 *
 * @throws {OperatorError} when a template cannot be read, has a placeholder that does not exist, or lacks one that it needs.
 */
export function mail(
  settings: MailSettings,
  links: (() => Links) | null = null,
  server: MailServer = mailServer(settings),
): MailDestination {
  const write = mailWriter(settings, links)

  async function post(recipient: Recipient, signal: AbortSignal, mayBegin?: () => boolean): Promise<MailResult> {
    return server.send({ ...recipient, message: await write(recipient) }, TURN, signal, mayBegin)
  }

  return {
    name: 'mail',
    events: settings.tells,
    repeatable: 0,
    timeout: TIMEOUT,
    concurrency: CONCURRENCY,

    async deliver({ kind, id, contact, code }, signal, mayBegin) {
      const { name, email } = contact
      const { answer, ...result } = await post({ kind, id, addressee: contact, name, email, code }, signal, mayBegin)
      return result
    },

    try(kind, email, signal) {
      // A code and a contact that are nobody's.
      const code = kind === 'invited' ? 'A'.repeat(CODE_LENGTH) : undefined
      const sample = {
        id: `check_${randomUUID()}`,
        addressee: { id: randomUUID(), createdAt: new Date() },
        name: 'Ada Lovelace',
      }
      return post({ kind, ...sample, email, code }, signal)
    },
    check: server.check,
    close: server.close,
  }
}
