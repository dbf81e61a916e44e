import { randomUUID } from 'node:crypto'
import type { OwnDestination } from '../waitlist/ports/destination.ts'
import { mailWriter, type Recipient } from './mail-message.ts'
import { CONCURRENCY, type MailResult, type MailServer, mailServer, TIMEOUT, type Turn } from './mail-server.ts'
import type { MailSettings } from './mail-settings.ts'

export interface MailDestination extends OwnDestination {
  /** Sends one mail with a sample name. Never rejects. */
  try(email: string, signal: AbortSignal): Promise<MailResult>
}

const TURN: Turn = { rank: 'backlog', longest: 5_000 }

/**
 * Sends each new contact a welcome mail (RFC 5321, RFC 5322). A server cannot recognise a repeated mail, so one whose end
 * was sent and not answered is never sent again. `server`: where other mails are sent, too.
 *
 * @throws {OperatorError} when a template cannot be read, or has a placeholder that does not exist.
 */
export function mail(settings: MailSettings, server: MailServer = mailServer(settings)): MailDestination {
  const write = mailWriter(settings)

  async function post(recipient: Recipient, signal: AbortSignal, mayBegin?: () => boolean): Promise<MailResult> {
    return server.send({ ...recipient, message: await write(recipient) }, TURN, signal, mayBegin)
  }

  return {
    name: 'mail',
    repeatable: 0,
    timeout: TIMEOUT,
    concurrency: CONCURRENCY,

    async deliver({ id, contact: { name, email } }, signal, mayBegin) {
      const { answer, ...result } = await post({ id, name, email }, signal, mayBegin)
      return result
    },

    try: (email, signal) => post({ id: `check_${randomUUID()}`, name: 'Ada Lovelace', email }, signal),
    check: server.check,
    close: server.close,
  }
}
