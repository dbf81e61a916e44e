import { typed } from '../invocation.ts'
import { attempting } from '../outbound/attempt.ts'
import { caller } from '../outbound/caller.ts'
import type { Rate } from '../outbound/pace.ts'
import { judge } from '../outbound/reply.ts'
import type { Alert, Channel, DeliveryResult, Failure } from '../waitlist/ports/destination.ts'
import { undirected, unlinked } from './names.ts'

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
  const { origin, pathname, searchParams } = new URL(settings.url)
  for (const [member, value] of Object.entries(query ?? {})) {
    if (!searchParams.has(member)) searchParams.set(member, value)
  }
  const search = searchParams.size === 0 ? '' : `?${searchParams}`
  const secrets = [...pathname.split('/'), ...searchParams.values()].filter(part => part.length >= 8)
  const waiting = waitMember === undefined ? {} : { waitMember }
  const { call, close } = caller({ base: origin, headers: {}, rate: RATE, secrets, ...waiting })
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
    async tell(alert, signal): Promise<DeliveryResult> {
      return (await send(sentenceOf(alert, quote), signal)) ?? { is: 'delivered' }
    },
    check: signal => send('waitlist check: this works', signal),
    close,
  }
}

const grouped = new Intl.NumberFormat('en')

function sentenceOf(alert: Alert, quote: (text: string) => string): string {
  const called = 'called' in alert ? quote(alert.called) : ''
  switch (alert.is) {
    case 'joined':
      return `${joined(alert, quote)}${inAll(alert)}${inDoubt(alert)}`
    case 'holding':
      return `Signups are being held: ${held(alert)} (${reasonsOf(alert)}): see ${typed('waitlist held')}`
    case 'not holding':
      return `No more signups are being held: ${held(alert)}${alert.held.length === 0 ? '' : `, see ${typed('waitlist held')}`}`
    case 'refusing':
      return 'Signups cannot be stored, and visitors are asked to try again later: the log says why'
    case 'storing':
      return 'Signups are stored again'
    case 'late':
      return `Deliveries to ${called} are late, the oldest by more than an hour: see ${typed('waitlist deliveries')}`
    case 'on time':
      return `Deliveries to ${called} are on time again`
    case 'answering':
      return `${capital(called)} answers again: the ${alert.keeps} that were kept are ${completed[alert.keeps]} now`
    default: {
      const what = alert.is === 'misconfigured' ? 'refuses our settings' : 'does not answer'
      return `${capital(called)} ${what}: ${alert.keeps} are kept and ${completed[alert.keeps]} later`
    }
  }
}

type Held = Alert & { readonly is: 'holding' | 'not holding' }

function held({ held }: Held): string {
  const count = held.reduce((sum, { count }) => sum + count, 0)
  return count === 0 ? 'none waits for you' : count === 1 ? '1 waits for you' : `${grouped.format(count)} wait for you`
}

const reasonsOf = ({ held }: Held): string =>
  held.map(({ reason, count }) => `${reason} ${grouped.format(count)}`).join(', ')

const completed = { signups: 'completed', events: 'delivered' }

const capital = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1)

type Joined = Alert & { readonly is: 'joined' }

/** "37 people", "Ada Lovelace", "Ada Lovelace and Grace Hopper", "Ada Lovelace, Grace Hopper and 35 more". */
function joined({ people, names }: Joined, quote: (text: string) => string): string {
  const parts = names.map(name => quote(shown(name)))
  const others = people - parts.length
  if (parts.length === 0) parts.push(people === 1 ? '1 person' : `${grouped.format(people)} people`)
  else if (others > 0) parts.push(`${grouped.format(others)} more`)
  const last = parts.pop()
  return `${parts.length === 0 ? last : `${parts.join(', ')} and ${last}`} joined the waitlist`
}

const inAll = ({ total }: Joined): string => (total === null ? '' : `, ${grouped.format(total)} in all`)

/** A chat cannot drop a repetition, so readers are told that there may be one. */
function inDoubt({ people, doubtful }: Joined): string {
  if (doubtful === 0) return ''
  return ` (${doubtful === people ? '' : `${grouped.format(doubtful)} of them `}may have been announced before)`
}

/** Code points of a name: ten of them fit into a message, however they are escaped. */
const LONGEST_NAME = 40

const oneLine = (text: string): string =>
  undirected(text)
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '')
    .trim()

function shown(name: string): string {
  const line = oneLine(name)
  const characters = [...line]
  return characters.length <= LONGEST_NAME ? line : `${characters.slice(0, LONGEST_NAME - 1).join('')}…`
}
