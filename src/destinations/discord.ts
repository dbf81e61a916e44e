import type { Chat } from './chat.ts'

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
