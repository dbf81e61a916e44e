import type { Chat } from './chat.ts'

/** https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
export const slack: Chat = {
  name: 'slack',
  title: 'Slack',
  // https://docs.slack.dev/messaging/formatting-message-text#escaping
  escaped: text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  message: text => ({ text, mrkdwn: false, unfurl_links: false, unfurl_media: false }),
}
