import { attempting } from '../outbound/attempt.ts'
import { caller } from '../outbound/caller.ts'
import { secretsIn } from '../outbound/excerpt.ts'
import type { Rate } from '../outbound/pace.ts'
import { judge } from '../outbound/reply.ts'
import type { Channel, DeliveryResult, Failure } from '../waitlist/ports/destination.ts'
import { oneLine, unlinked } from './names.ts'
import { sentenceOf } from './sentences.ts'

export interface ChatSettings {
  /** Where the chat takes messages for one channel: http or https, with a path and perhaps a query. It is a secret. */
  readonly url: string
  /** What a message begins with; null: nothing. */
  readonly service: string | null
}

/** What distinguishes one chat from another. */
export interface Chat {
  readonly name: string
  readonly title: string
  readonly waitMember?: string
  /** Added to the address, unless it says otherwise. */
  readonly query?: Readonly<Record<string, string>>
  /** So that a text is shown as it is, and is no mark-up. */
  escaped(text: string): string
  /** The body of a request. `text` is escaped where it comes from others. */
  message(text: string): object
}

/** https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
export const slack: Chat = {
  name: 'slack',
  title: 'Slack',
  // https://docs.slack.dev/messaging/formatting-message-text#escaping
  escaped: text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  message: text => ({ text, mrkdwn: false, unfurl_links: false, unfurl_media: false }),
}

/** https://discord.com/developers/docs/resources/message#message-object-message-flags */
const SUPPRESS_EMBEDS = 4

/** https://discord.com/developers/docs/resources/webhook#execute-webhook */
export const discord: Chat = {
  name: 'discord',
  title: 'Discord',
  waitMember: 'retry_after',
  // Otherwise it answers before it has stored the message.
  query: { wait: 'true' },
  // The last two would begin a list.
  escaped: text => text.replaceAll(/[\\*_~`|<>#()[\]]|^-|(?<=^\d+)\./g, '\\$&'),
  message: content => ({ content, allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS }),
}

/** Milliseconds for one attempt. */
const TIMEOUT = 15_000
/** Clients make links and mentions of what they find in any text. */
const ZERO_WIDTH_SPACE = '\u200B'
/** Slack takes about one a second, Discord a little more. */
const RATE: Rate = { calls: 1, per: 1_000, connections: 1 }

/** Tells a channel by its incoming webhook. */
export function chat({ name, title, waitMember, query, escaped, message }: Chat, settings: ChatSettings): Channel {
  const url = new URL(settings.url)
  const { origin, pathname, searchParams } = url
  for (const [member, value] of Object.entries(query ?? {})) {
    if (!searchParams.has(member)) searchParams.set(member, value)
  }
  const search = searchParams.size === 0 ? '' : `?${searchParams}`
  const waiting = waitMember === undefined ? {} : { waitMember }
  const { call, close } = caller({ base: origin, headers: {}, rate: RATE, secrets: secretsIn(url), ...waiting })
  const quote = (text: string) => escaped(unlinked(oneLine(text), ZERO_WIDTH_SPACE))
  const prefix = settings.service === null ? '' : `${quote(settings.service)}: `

  /** Null: it has arrived. Nothing is refused for good, since what we say is not at fault: the channel or its settings are. */
  async function send(text: string, signal: AbortSignal): Promise<Failure | null> {
    const body = message(prefix + text)
    const post = { to: `tell ${title}`, method: 'POST', path: pathname + search, body, statusAlone: true } as const
    const reply = await attempting(TIMEOUT, signal, attempt => call(post, attempt))
    if (reply.is !== 'answered') return reply
    return reply.status < 300 ? null : judge(reply)
  }

  return {
    name,
    title,
    minInterval: 60_000,
    withNames: false,
    async tell(alert, signal): Promise<DeliveryResult> {
      return (await send(sentenceOf(alert, quote), signal)) ?? { is: 'delivered' }
    },
    check: signal => send('waitlist check: this works', signal),
    close,
  }
}
