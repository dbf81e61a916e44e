import { randomUUID } from 'node:crypto'
import type { MailServer } from '../mail/send.ts'
import type { Mailbox } from '../mail/settings.ts'
import type { Channel } from './channel.ts'

const MIN_INTERVAL = 3_600_000

/**
 * Mails the owner one sentence, as subject and as text. A repeated message also counts those who joined since, so each has
 * an id of its own: mailboxes hide what has the id of an earlier one.
 */
export function ownerMail(server: MailServer, to: Mailbox, service: string | null): Channel {
  return {
    ...{ name: 'owner-mail', label: "the owner's mailbox", minInterval: MIN_INTERVAL },
    async send(sentence, signal) {
      const text = service === null ? sentence : `${service}: ${sentence}`
      const result = await server.send({ id: `owner_${randomUUID()}`, to, subject: text, text }, signal)
      if (result.is === 'delivered') return null
      return result.is === 'refused' ? { is: 'misconfigured', why: result.why } : result
    },
    close: server.close,
  }
}
