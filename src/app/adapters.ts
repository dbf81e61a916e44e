import type { Config } from '../config/load.ts'
import { settings } from '../config/settings.ts'
import type { LinkActions } from '../confirm/routes.ts'
import { confirm, find } from '../confirm/store.ts'
import { type Links, linksOf } from '../confirm/token.ts'
import type { OwnDestination } from '../delivery/destination.ts'
import { eraseContact } from '../erase/store.ts'
import type { MailServer } from '../mail/send.ts'
import { type Channel, ownerMail } from '../notify/channel.ts'
import { type Limiter, memoryLimiter } from '../rate-limit/memory.ts'
import type { Store } from '../store/store.ts'

/** What the settings name outside of this process. undici, nodemailer and vendors are loaded on demand: most take 10 MB. */

/** A few for each attempt at a signup: pages are loaded again, and forms are left open until their challenge expires. */
const CHALLENGES = 3

export const challengeLimiter = ({ quota: { limit, window } }: Pick<Config, 'quota'>): Limiter =>
  memoryLimiter({ limit: CHALLENGES * limit, window })

/** The links in mails, signed with a secret. */
export const linksIn = ({ baseUrl, tls, port }: Pick<Config, 'baseUrl' | 'tls' | 'port'>, secret: string): Links =>
  linksOf(baseUrl ?? `${tls === null ? 'http' : 'https'}://localhost:${port}`, secret)

/** What these links do. The deliveries of a contact that confirms are found by the next poll. */
export const linkActions = (
  store: Store,
  secret: string,
  { signupTargets }: Pick<Config, 'signupTargets'>,
): LinkActions => ({
  secret,
  find: contact => store.transaction(tx => find(tx, contact)),
  confirm: contact => store.transaction(tx => confirm(tx, contact, signupTargets)),
  async leave(contact) {
    await store.transaction(async tx => {
      const found = await find(tx, contact)
      if (found) await eraseContact(tx, found.number, found.email, contact.createdAt.getTime())
    })
    await store.truncateWal()
  },
})

/**
 * Opens the provider, the other destinations and the channels. No connection is made. `links`: those in mails.
 *
 * @throws {OperatorError} when one cannot be opened as configured.
 */
export async function openDestinations(config: Config, links: Links) {
  const { provider: choice, webhook, mail } = config
  const mailServer = mail && (await import('../mail/send.ts')).mailServer(mail)
  const own: OwnDestination[] = []
  if (mail !== null && mailServer !== null && mail.letters.length > 0) {
    own.push((await import('../mail/destination.ts')).mailDestination(mail, () => links, mailServer))
  }
  if (webhook !== null) own.push((await import('../notify/webhook.ts')).webhook(webhook))
  const provider = choice && (await import('../providers/open.ts')).openProvider(choice)
  const channels = await openChannels(config, mailServer)
  return {
    provider,
    own,
    channels,
    mailServer,
    /** Those that are notified of each event by itself. */
    events: [...(provider?.automation ? [provider.automation] : []), ...own],
    close: () => mailServer?.close(),
  }
}

async function openChannels(config: Config, mailServer: MailServer | null): Promise<readonly Channel[]> {
  const { slack, discord, 'owner-mail': owner } = config.channels
  const service = config.service === settings.SERVICE_NAME.default ? null : config.service
  const channels: Channel[] = []
  if (slack !== undefined || discord !== undefined) {
    const chats = await import('../notify/chat.ts')
    if (slack !== undefined) channels.push(chats.chat(chats.slack, slack, service))
    if (discord !== undefined) channels.push(chats.chat(chats.discord, discord, service))
  }
  if (owner !== undefined && mailServer !== null) channels.push(ownerMail(mailServer, owner, service))
  return channels
}
