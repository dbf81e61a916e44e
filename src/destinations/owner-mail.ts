import { randomUUID } from 'node:crypto'
import type { Channel, Failure } from '../waitlist/ports/destination.ts'
import { bytesOf } from './mail-message.ts'
import type { MailServer, Turn } from './mail-server.ts'
import type { Mailbox } from './mail-settings.ts'
import { sentenceOf } from './sentences.ts'

export interface OwnerMailSettings {
  readonly from: Mailbox
  readonly to: Mailbox
  /** What a mail begins with; null: nothing. */
  readonly service: string | null
  /** As for `Channel`. */
  readonly minInterval: number
}

/** Ahead of welcome mails: there are few, and an alert is tried only once. With a whole attempt it is within a lease. */
const TURN: Turn = { rank: 'visitor', longest: 15_000 }

/**
 * Mails the owner, through the server that sends welcome mails, what chats are told: one sentence, as subject and as text.
 * It has no names, since mails are kept and forwarded, and no erasure reaches them.
 *
 * A repeated digest also tells of those who joined since. So each mail has an id of its own: many mailboxes hide what has
 * the id of an earlier one.
 */
export function ownerMail(server: MailServer, { from, to, service, minInterval }: OwnerMailSettings): Channel {
  const prefix = service === null ? '' : `${service}: `

  /** Null: the server has it. Nothing is refused for good, nor one mail alone: the address is at fault, or the server. */
  async function send(sentence: string, signal: AbortSignal): Promise<Failure | null> {
    const text = prefix + sentence
    const message = await bytesOf({ from, to, subject: text, text: `${text}\n`, id: `owner_${randomUUID()}` })
    const result = await server.send({ email: to.address, message }, TURN, signal)
    switch (result.is) {
      case 'delivered':
        return null
      case 'gone':
      case 'refused':
        return { is: 'misconfigured', why: result.why }
      case 'unreached': {
        const { alone, ...rest } = result
        return rest
      }
      default:
        return result
    }
  }

  return {
    name: 'owner-mail',
    title: "the owner's mailbox",
    minInterval,
    withNames: false,
    async tell(alert, signal) {
      return (await send(sentenceOf(alert, asItIs), signal)) ?? { is: 'delivered' }
    },
    check: signal => send('waitlist check: this works', signal),
    close: server.close,
  }
}

const asItIs = (text: string): string => text
