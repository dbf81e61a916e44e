import { call, deadline, failureOf } from '../http-client/call.ts'
import { defuseLinks, ZERO_WIDTH_SPACE } from '../mail/template.ts'
import type { Channel } from './channel.ts'
import { secretsIn } from './webhook.ts'

/** What distinguishes one chat from another. */
interface Chat {
  readonly name: string
  readonly label: string
  /** Added to the address. */
  readonly query?: readonly [name: string, value: string]
  /** The body of a request that shows a text as it is. */
  message(text: string): object
}

/** https://docs.slack.dev/messaging/formatting-message-text#escaping */
export const slack: Chat = {
  name: 'slack',
  label: 'Slack',
  message: text => ({
    text: text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
    ...{ mrkdwn: false, unfurl_links: false, unfurl_media: false },
  }),
}

/** https://discord.com/developers/docs/resources/message#message-object-message-flags */
const SUPPRESS_EMBEDS = 4

/** https://discord.com/developers/docs/resources/webhook#execute-webhook */
export const discord: Chat = {
  name: 'discord',
  label: 'Discord',
  // Otherwise it answers before it has stored the message.
  query: ['wait', 'true'],
  message: text => ({
    // The last two would begin a list.
    content: text.replaceAll(/[\\*_~`|<>#()[\]]|^-|(?<=^\d+)\./g, '\\$&'),
    ...{ allowed_mentions: { parse: [] }, flags: SUPPRESS_EMBEDS },
  }),
}

/** Milliseconds for one attempt. */
const TIMEOUT = 15_000
const MIN_INTERVAL = 60_000

/** Tells a channel by its incoming webhook, whose address is a secret. `service`: what a message begins with; null: nothing. */
export function chat({ name, label, query, message }: Chat, address: string, service: string | null): Channel {
  const url = new URL(address)
  if (query !== undefined && !url.searchParams.has(query[0])) url.searchParams.set(...query)
  const secrets = secretsIn(address)
  const prefix = service === null ? '' : `${service}: `

  return {
    ...{ name, label, minInterval: MIN_INTERVAL },
    /** Nothing is refused for good: what we say is not at fault, but the channel or its settings. */
    async send(sentence, stop) {
      const body = message(defuseLinks(prefix + sentence, ZERO_WIDTH_SPACE))
      const signal = deadline(TIMEOUT, stop)
      const reply = await call({ action: `tell ${label}`, method: 'POST', url: url.href, body, secrets, signal })
      return reply.is === 'ok' ? null : failureOf(reply)
    },
  }
}
