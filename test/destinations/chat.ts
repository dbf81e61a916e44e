import type { TestContext } from 'node:test'
import { type Chat, chat, discord, slack } from '../../src/destinations/chat.ts'
import type { Alert } from '../../src/waitlist/ports/destination.ts'
import type { Received, Said } from '../harness/receiver.ts'

export interface Fake {
  readonly chat: Chat
  /** The path of an address, as the vendor makes it, and what of it is secret. */
  readonly path: string
  readonly secrets: readonly string[]
  /** The text of a message that the vendor takes; null: it would be refused. */
  read(received: Received): string | null
  readonly accepted: Said
  /** Refusals that the vendor documents. */
  readonly refusals: Readonly<Record<string, Said>>
}

const only = (json: object, ...members: string[]) => Object.keys(json).every(member => members.includes(member))

const SLACK_SECRET = 'XXXXXXXXXXXXXXXXXXXXXXXX'
const word = (status: number, body: string): Said => ({ status, body, headers: { 'content-type': 'text/plain' } })

/** https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, and its list of errors. */
export const slackFake: Fake = {
  chat: slack,
  path: `/services/T00000000/B00000000/${SLACK_SECRET}`,
  secrets: [SLACK_SECRET, 'T00000000', 'B00000000'],
  read({ method, path, headers, json }) {
    if (method !== 'POST' || !path.startsWith('/services/')) return null
    if (headers['content-type'] !== 'application/json' || typeof json?.text !== 'string' || json.text === '')
      return null
    return only(json, 'text', 'mrkdwn', 'unfurl_links', 'unfurl_media') ? json.text : null
  },
  accepted: word(200, 'ok'),
  refusals: {
    '400 invalid_payload': word(400, 'invalid_payload'),
    '400 user_not_found': word(400, 'user_not_found'),
    '403 action_prohibited': word(403, 'action_prohibited'),
    '404 no_service': word(404, 'no_service'),
    '404 channel_not_found': word(404, 'channel_not_found'),
    '410 channel_is_archived': word(410, 'channel_is_archived'),
  },
}

const DISCORD_SECRET = 'aVeryLongToken_of-68-characters'

/** https://discord.com/developers/docs/resources/webhook#execute-webhook */
export const discordFake: Fake = {
  chat: discord,
  path: `/api/webhooks/223704706495545344/${DISCORD_SECRET}`,
  secrets: [DISCORD_SECRET, '223704706495545344'],
  read({ method, path, query, headers, json }) {
    if (method !== 'POST' || !path.startsWith('/api/webhooks/') || query.wait !== 'true') return null
    const content = json?.content
    if (headers['content-type'] !== 'application/json' || typeof content !== 'string') return null
    if (content.length === 0 || content.length > 2_000) return null
    return only(json, 'content', 'allowed_mentions', 'flags') ? content : null
  },
  accepted: { status: 200, body: { id: '1', type: 0, content: '' } },
  refusals: {
    '400 for a forum': { status: 400, body: { message: 'Webhooks posted to forum channels', code: 220001 } },
    '401': { status: 401, body: { message: 'Invalid Webhook Token', code: 50027 } },
    '404': { status: 404, body: { message: 'Unknown Webhook', code: 10015 } },
  },
}

export const fakes = [slackFake, discordFake]

export function channelAt(t: Pick<TestContext, 'after'>, fake: Fake, origin: string, service: string | null = null) {
  const channel = chat(fake.chat, { url: origin + fake.path, service })
  t.after(channel.close)
  return channel
}

export const joined = (people: number, more: Partial<Alert & { is: 'digest' }> = {}): Alert => ({
  ...{ is: 'digest', joined: people, invited: 0, doubt: false, names: [], total: 1_204 },
  ...more,
})
