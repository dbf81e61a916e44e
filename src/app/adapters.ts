import type { Challenge } from '../challenges/index.ts'
import { openChallenge } from '../challenges/index.ts'
import type { Config } from '../config/load.ts'
import { type Log, OperatorError } from '../config/operator.ts'
import { settings } from '../config/settings.ts'
import type { LinkActions } from '../confirm/routes.ts'
import { confirm, find } from '../confirm/store.ts'
import { LINKS_SECRET, type Links, linksOf } from '../confirm/token.ts'
import type { Destination, OwnDestination, Provider, Removal } from '../delivery/destination.ts'
import { eraseContact } from '../erase/store.ts'
import { holdReasons } from '../holds/store.ts'
import type { InvitationTargets } from '../invite/store.ts'
import type { MailServer } from '../mail/send.ts'
import type { Channel } from '../notify/channel.ts'
import { type Limiter, memoryLimiter } from '../rate-limit/memory.ts'
import { sharedLimiter } from '../rate-limit/shared.ts'
import type { NewsKind } from '../signup/contact.ts'
import type { SignupTargets } from '../store/activate.ts'
import { openDatabase } from '../store/open.ts'
import { openStore, type Store } from '../store/store.ts'
import type { Telemetry } from './telemetry.ts'

/**
 * The adapters that the settings name. What brings undici, nodemailer, pg or a vendor is loaded where it is used:
 * most take some 10 MB each.
 */

/** @throws {OperatorError} when it cannot be opened as configured. */
export async function storeOf(
  { store: location, trackSources, holds }: Config,
  targets: SignupTargets,
  log: Log,
  telemetry: Telemetry | null,
): Promise<Store> {
  const database = await openDatabase(location, log)
  return openStore(database, { targets, trackSources, holdReasons: holds && holdReasons(holds), telemetry })
}

/** What becomes of new signups. */
export const targetsOf = (
  { eventName }: Pick<Config, 'eventName'>,
  { provider, namesFor, confirmation }: Pick<Destinations, 'provider' | 'namesFor' | 'confirmation'>,
): SignupTargets => ({
  eventName,
  provider: provider?.name ?? null,
  destinations: namesFor('joined'),
  confirmation,
})

/** Instances that share a database share the rate limit. */
export const limiterOf = ({ quota }: Config, { statement }: Pick<Store, 'statement'>, log: Log): Limiter =>
  statement === null ? memoryLimiter(quota) : sharedLimiter(quota, statement, log)

/** A few for each attempt at a signup: pages are loaded again, and forms are left open until their challenge expires. */
const CHALLENGES = 3

export const challengeLimiter = ({ quota: { limit, window } }: Pick<Config, 'quota'>): Limiter =>
  memoryLimiter({ limit: CHALLENGES * limit, window })

/** `shared` returns a random value that is the same for all instances. */
export async function challengeOf(
  { challenge, corsOrigins, baseUrl }: Config,
  shared: Store['secret'],
  log: Log,
): Promise<Challenge | null> {
  if (challenge === null) return null
  const hosts = [...corsOrigins, baseUrl].flatMap(url => (url === null ? [] : new URL(url).hostname))
  const secret = (name: string) =>
    shared(name).catch((error: Error) => {
      throw new OperatorError(`the key of the challenges could not be kept in the database: ${error.message}`)
    })
  return openChallenge(challenge, { secret, hosts, log })
}

/** What the links in mails are made and read with. They work with mail off, too. `shared`: as of `challengeOf`. */
export async function linkingOf(
  { baseUrl, tls, port }: Pick<Config, 'baseUrl' | 'tls' | 'port'>,
  shared: Store['secret'],
): Promise<{ readonly secret: string; readonly links: Links }> {
  const secret = await shared(LINKS_SECRET).catch((error: Error) => {
    throw new OperatorError(`the key of the links in mails could not be kept in the database: ${error.message}`)
  })
  return {
    secret,
    links: linksOf(baseUrl ?? `${tls === null ? 'http' : 'https'}://localhost:${port}`, secret),
  }
}

/** What the links in mails do. `wake`: a confirmed contact has deliveries. */
export const linkActions = (store: Store, secret: string, targets: SignupTargets, wake: () => void): LinkActions => ({
  secret,
  find: contact => store.transaction(tx => find(tx, contact)),
  async confirm(contact) {
    const confirmed = await store.transaction(tx => confirm(tx, contact, targets))
    if (confirmed === 'now') wake()
    return confirmed
  },
  async leave(contact) {
    await store.transaction(async tx => {
      const found = await find(tx, contact)
      if (found) await eraseContact(tx, found.number, found.email, contact.createdAt.getTime())
    })
    await store.truncateLog()
  },
})

/** Who is told of contacts and their events. */
interface Destinations {
  readonly provider: Provider | null
  readonly own: readonly OwnDestination[]
  /** Those that are told of each event by itself: the provider's automation, and our own. */
  readonly ofEvents: readonly Destination[]
  readonly channels: readonly Channel[]
  /** The names of all of them. */
  readonly names: readonly string[]
  /** The names that deliveries of an event are stored under: channels have none. */
  namesFor(event: NewsKind): readonly string[]
  /** The one that asks new contacts to confirm their address; null: nobody has to. */
  readonly confirmation: string | null
  close(): Promise<void>
}

/**
 * No connection is opened. `links`: those in mails, once one is sent.
 *
 * @throws {OperatorError} when one cannot be opened as configured; then nothing is left open.
 */
export async function openDestinations(
  config: Config,
  links: () => Links = () => {
    throw new Error('no mail is sent here')
  },
): Promise<Destinations> {
  const { provider, webhook, mail } = config
  // First, since the files of mails may be wrong, and nothing may be left open then.
  const mailServer = mail && (await import('../mail/send.ts')).mailServer(mail)
  const own = [
    webhook && (await import('../notify/webhook.ts')).webhook(webhook),
    mailServer &&
      mail !== null &&
      mail.letters.length > 0 &&
      (await import('../mail/destination.ts')).mailDestination(mail, links, mailServer),
  ].filter(each => typeof each === 'object' && each !== null)
  const opened = provider && (await import('../providers/open.ts')).openProvider(provider)
  const channels = await openChannels(config, mailServer)
  const ofEvents = [opened?.automation, ...own].filter(each => each != null)
  return {
    provider: opened,
    own,
    ofEvents,
    channels,
    names: [...ofEvents, ...channels].map(({ name }) => name),
    namesFor: event => ofEvents.filter(({ events }) => events.includes(event)).map(({ name }) => name),
    confirmation: ofEvents.find(({ events }) => events.includes('confirmation'))?.name ?? null,
    async close() {
      await Promise.all([...own, ...channels].map(each => each.close()))
    },
  }
}

async function openChannels(config: Config, mailServer: MailServer | null): Promise<readonly Channel[]> {
  const { mail } = config
  const { slack, discord, 'owner-mail': to } = config.channels
  const service = config.service === settings.SERVICE_NAME.default ? null : config.service
  const channels: Channel[] = []
  if (slack !== undefined || discord !== undefined) {
    const chats = await import('../notify/chat.ts')
    if (slack !== undefined) channels.push(chats.chat(chats.slack, slack, service))
    if (discord !== undefined) channels.push(chats.chat(chats.discord, discord, service))
  }
  if (to !== undefined && mail !== null && mailServer !== null) {
    const { ownerMail } = await import('../notify/owner-mail.ts')
    channels.push(ownerMail(mailServer, to, service))
  }
  return channels
}

/**
 * What becomes of a new signup.
 *
 * @throws {OperatorError} when a destination cannot be opened as configured.
 */
export async function signupTargetsOf(config: Config): Promise<SignupTargets> {
  const destinations = await openDestinations(config)
  await destinations.close()
  return targetsOf(config, destinations)
}

/**
 * Who is told of an invitation.
 *
 * @throws {OperatorError} when a destination cannot be opened as configured.
 */
export async function invitationTargetsOf(config: Config): Promise<InvitationTargets> {
  const { namesFor, close } = await openDestinations(config)
  await close()
  return { eventName: config.invitedEventName, destinations: namesFor('invited') }
}

const noChannels = { slack: undefined, discord: undefined, 'owner-mail': undefined }

/** Removes a contact from the provider that is set. */
export async function removeAtProvider(config: Config, email: string, signal: AbortSignal): Promise<Removal> {
  const { provider, close } = await openDestinations({ ...config, webhook: null, mail: null, channels: noChannels })
  if (provider === null) throw new Error('no provider is set')
  return provider.remove(email, signal).finally(close)
}
