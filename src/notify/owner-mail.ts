import { randomUUID } from 'node:crypto'
import { sentenceOf } from '../destinations/sentences.ts'
import type { MailServer } from '../mail/send.ts'
import type { Mailbox } from '../mail/settings.ts'
import type { Channel, Failure } from '../waitlist/ports/destination.ts'

/**
 * Mails the owner one sentence, as subject and as text. A repeated digest also counts those who joined since, so each mail
 * has an id of its own: mailboxes hide what has the id of an earlier one.
 */
export function ownerMail(server: MailServer, to: Mailbox, service: string | null): Channel {
  const prefix = service === null ? '' : `${service}: `

  async function send(sentence: string, signal: AbortSignal): Promise<Failure | null> {
    const text = prefix + sentence
    const { response, ...result } = await server.send({ id: `owner_${randomUUID()}`, to, subject: text, text }, signal)
    if (result.is === 'delivered') return null
    return result.is === 'refused' || result.is === 'gone' ? { is: 'misconfigured', why: result.why } : result
  }

  return {
    name: 'owner-mail',
    title: "the owner's mailbox",
    minInterval: 3_600_000,
    withNames: false,
    tell: async (alert, signal) =>
      (await send(
        sentenceOf(alert, text => text),
        signal,
      )) ?? { is: 'delivered' },
    check: signal => send('waitlist check: this works', signal),
    close: server.close,
  }
}
