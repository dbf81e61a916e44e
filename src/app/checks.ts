import { existsSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import { readDomains } from '../holds/domains.ts'
import { readMessages, translatable } from '../http/messages/file.ts'
import { paths } from '../http/paths.ts'
import { type CertificateFiles, readPair } from '../http/tls.ts'
import { TEST_SENTENCE } from '../notify/channel.ts'
import type { EventKind } from '../signup/contact.ts'
import type { Integrity } from '../store/integrity.ts'
import { whyEphemeral } from '../store/sqlite/files.ts'
import type { DeliveryCount, HeldCount } from '../waitlist/alerts/counts.ts'
import { type Log, OperatorError } from '../waitlist/ports/log.ts'
import { challengeOf, linkingOf, openDestinations } from './adapters.ts'
import { type Operator, operatorOf } from './database.ts'

/** The result of trying one part of the configuration. */
export interface CheckResult {
  readonly what: string
  /** `note`: it works, and its owner should know. */
  readonly is: 'ok' | 'note' | 'wrong'
  readonly why: string
}

const NO_PROVIDER: CheckResult = { what: 'provider', is: 'ok', why: 'none; the database is the list' }
const NO_DESTINATION: CheckResult = { what: 'destinations', is: 'ok', why: 'none' }
type Check = (stop: AbortSignal) => Promise<{ readonly why: string } | null>

const NOT_TRIED = { is: 'ok', why: 'not tried; --send-test sends a test message' } as const

/** Stands in for what all instances share, which is in the store. Nothing that it makes is given to anybody. */
const UNSHARED = '0'.repeat(64)
const silent: Log = { info() {}, warn() {}, error() {} }

/**
 * Tries the store, the certificate, the public address, the challenge, the provider and the mail server, and changes none of
 * them. With `sendTest` the webhook, the chats and the owner are sent a test message too; nobody is sent anything otherwise.
 */
export async function checkAll(config: Config, sendTest = false): Promise<readonly CheckResult[]> {
  const { store, tls } = config
  const lost = store.kind === 'sqlite' && existsSync(store.path) ? whyEphemeral(store.path) : null
  const operator = operatorOf(config)
  const destinations = await openDestinations(config)
  const { provider, own, channels, names } = destinations
  const receivers = [
    ...own.filter(({ name }) => name !== 'mail').map(({ name, check }) => ({ name, check })),
    ...channels.map(({ name, send }) => ({ name, check: (signal: AbortSignal) => send(TEST_SENTENCE, signal) })),
  ]
  const challenge = await challengeOf(config, async () => UNSHARED, silent)
  const server = config.mail && (await import('../mail/send.ts')).mailServer(config.mail)
  const mailGood = config.mail?.server.login ? 'the server accepts the login' : 'the server greets; no login is set'
  const resultOf = async (what: string, good: string, check: Check): Promise<CheckResult> => {
    // Each check has its own timeout.
    const failure = await check(new AbortController().signal)
    return failure === null ? { what, is: 'ok', why: good } : { what, is: 'wrong', why: failure.why }
  }
  try {
    const [database, ...others] = await Promise.all([
      tried('database', operator.describe),
      ...(config.baseUrl === null ? [] : [reached(config.baseUrl)]),
      ...(lost === null ? [] : [{ what: 'data folder', is: 'note', why: lost } as const]),
      ...(tls === null ? [] : [certificateIn(tls)]),
      ...(challenge === null
        ? []
        : [resultOf(`challenge ${challenge.name}`, 'the settings are good', challenge.check)]),
      ...(config.blockedDomainsFile === null ? [] : [domainsIn(config.blockedDomainsFile)]),
      ...(config.messagesFile === null ? [] : [messagesIn(config.messagesFile)]),
      provider
        ? resultOf(`provider ${provider.name}`, 'the key and the settings are accepted', provider.check)
        : NO_PROVIDER,
      ...(own.length + channels.length === 0 ? [NO_DESTINATION] : []),
      ...(server === null ? [] : [resultOf('mail', mailGood, server.check)]),
      ...receivers.map(({ name, check }) =>
        sendTest ? resultOf(name, 'it took a test message', check) : { ...NOT_TRIED, what: name },
      ),
    ])
    const set = [provider?.name, ...names]
    const results = [database, ...others]
    return database.is === 'ok' ? [...results, ...(await checkStored(operator, set))] : results
  } finally {
    await Promise.all([destinations.close(), server?.close()])
  }
}

/**
 * Sends a mail to an address of the operator's, as a contact gets it but with a sample name. Its links are nobody's.
 *
 * @throws {OperatorError} when no mails are set up, or none of this kind.
 */
export async function checkMail(config: Config, email: string, kind: EventKind): Promise<CheckResult> {
  const { mail } = config
  if (mail === null) throw new OperatorError('SMTP_URL is not set: no mail can be sent')
  if (kind === 'confirmation' && !config.confirm)
    throw new OperatorError('CONFIRM=mail is not set: nobody is asked to confirm an address')
  const { links } = await linkingOf(config, async () => UNSHARED)
  const { mailDestination } = await import('../mail/destination.ts')
  const { mailServer } = await import('../mail/send.ts')
  const destination = mailDestination(mail, () => links, mailServer(mail))
  try {
    const result = await destination.sample(kind, email, new AbortController().signal)
    const what = `mail to ${email}`
    if (result.is !== 'delivered') return { what, is: 'wrong', why: result.why }
    return { what, is: 'ok', why: `the server took it${result.response ? `: ${result.response}` : ''}` }
  } finally {
    await destination.close()
  }
}

/** Whether the store is sound, and what waits for whom, since when and why. `set`: the destinations in force. */
async function checkStored(operator: Operator, set: readonly (string | undefined)[]): Promise<readonly CheckResult[]> {
  try {
    if (operator.isMissing()) return []
    const found = await operator.checkIntegrity()
    // What else a damaged file says is worth nothing.
    if (found.damage !== null) return [...integrity(found)]
    const { at, held, deliveries } = await operator.counts()
    const abandoned = deliveries.filter(({ state }) => state === 'abandoned')
    return [
      ...integrity(found),
      ...(held.length === 0 ? [] : [holding(held)]),
      ...deliveries
        .filter(({ state }) => state === 'waiting')
        .map(each => {
          const isSet = set.includes(each.destination)
          return waiting(each, at.getTime() - (each.oldest ?? at).getTime(), isSet)
        }),
      ...(abandoned.length === 0 ? [] : [abandonedDeliveries(abandoned.reduce((sum, { count }) => sum + count, 0))]),
    ]
  } catch (error) {
    return [wrong('what is stored', error)]
  }
}

/** Milliseconds after which what waits is late. */
const LATE = 3_600_000

function waiting({ destination, count, why }: DeliveryCount, milliseconds: number, isSet: boolean): CheckResult {
  const parts = [
    `${number(count)}, the oldest for ${duration(milliseconds)}`,
    ...(!isSet ? ['it is not set, so they go on waiting'] : []),
    ...(why === null ? [] : [`the last attempt: ${why}`]),
  ]
  const is = isSet && milliseconds > LATE ? 'wrong' : 'ok'
  return { what: `waiting for ${destination}`, is, why: parts.join('; ') }
}

function holding(held: readonly HeldCount[]): CheckResult {
  const total = held.reduce((sum, { count }) => sum + count, 0)
  const since = new Date(Math.min(...held.map(({ oldest }) => oldest.getTime())))
  const why = `${number(total)}, the first since ${since.toISOString().slice(0, 16)}Z; waitlist held says why`
  return { what: 'held signups', is: 'note', why }
}

const abandonedDeliveries = (count: number): CheckResult => ({
  what: 'abandoned',
  is: 'note',
  why: `${number(count)}; waitlist deliveries list --state abandoned says why`,
})

/** Bytes. With less the disk may be full before anybody has looked. */
const LOW_SPACE = 1024 ** 3

function* integrity({ damage, staleLeases, size, free }: Integrity): Generator<CheckResult> {
  yield damage === null
    ? { what: 'what is stored', is: 'ok', why: `the store is intact, and takes ${bytes(size)}` }
    : { what: 'what is stored', is: 'wrong', why: `it is damaged: ${damage}. Stop the service and restore a backup.` }
  if (free !== null) {
    const left = `${bytes(free.bytes)} left`
    if (free.bytes < free.needed) yield { what: 'disk', is: 'wrong', why: `${left}: signups are refused` }
    else yield { what: 'disk', is: free.bytes < LOW_SPACE ? 'note' : 'ok', why: left }
  }
  if (staleLeases > 0) {
    yield {
      what: 'deliveries',
      is: 'wrong',
      why: `${number(staleLeases)} were under way when a process ended, and nobody has taken them over: is the service running?`,
    }
  }
}

const number = (count: number): string => count.toLocaleString('en')

export const bytes = (count: number): string =>
  count < LOW_SPACE ? `${Math.ceil(count / 1024 ** 2)} MiB` : `${(count / LOW_SPACE).toFixed(1)} GiB`

function duration(milliseconds: number): string {
  const minutes = Math.floor(Math.max(0, milliseconds) / 60_000)
  if (minutes < 120) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}

async function tried(what: string, look: () => Promise<string>): Promise<CheckResult> {
  try {
    return { what, is: 'ok', why: await look() }
  } catch (error) {
    return wrong(what, error)
  }
}

/** Milliseconds. */
const ANSWER = 5_000

/** Whether a visitor reaches the service through its public address. A redirect would make a GET of a signup. */
async function reached(baseUrl: string): Promise<CheckResult> {
  const what = 'public address'
  try {
    const signal = AbortSignal.timeout(ANSWER)
    const answer = await fetch(baseUrl + paths.health, { redirect: 'manual', signal })
    const isHealthy = answer.status === 200 && (await answer.text()).includes('"status":"ok"')
    if (isHealthy) return { what, is: 'ok', why: `${baseUrl} is reached` }
    return { what, is: 'wrong', why: `${baseUrl} answers ${answer.status}, and not as a healthy service does` }
  } catch (error) {
    const { message, cause = error } = error as Error
    return { what, is: 'wrong', why: `${baseUrl} is not reached: ${(cause as Error).message || message}` }
  }
}

async function domainsIn(path: string): Promise<CheckResult> {
  const what = 'email domains'
  try {
    const all = [...readDomains(path).values()]
    const blocked = all.filter(isBlocked => isBlocked).length
    return { what, is: 'ok', why: `${number(blocked)} blocked, ${number(all.length - blocked)} excepted` }
  } catch (error) {
    return wrong(what, error)
  }
}

/** What a language lacks is told in English, which is worth a note. */
function messagesIn(path: string): CheckResult {
  const what = 'messages'
  try {
    const translations = [...readMessages(path)]
    const all = Object.keys(translatable).length
    const gaps = translations
      .map(([tag, translation]) => ({ tag, lacks: all - Object.keys(translation).length }))
      .filter(({ tag, lacks }) => lacks > 0 && tag !== 'en')
      .map(({ tag, lacks }) => `${tag} lacks ${lacks} of ${all} sentences, which are told in English`)
    if (gaps.length > 0) return { what, is: 'note', why: gaps.join('; ') }
    return { what, is: 'ok', why: `in ${translations.map(([tag]) => tag).join(', ')}` }
  } catch (error) {
    return wrong(what, error)
  }
}

/** Anything but an error for the operator is a bug, and is thrown. */
function wrong(what: string, error: unknown): CheckResult {
  if (!(error instanceof OperatorError)) throw error
  return { what, is: 'wrong', why: error.message }
}

/** An expired certificate is wrong; one that soon will be is worth a note, since most are renewed by themselves. */
function certificateIn(files: CertificateFiles): CheckResult {
  const what = 'certificate'
  try {
    const { expires } = readPair(files)
    const days = Math.floor((expires.getTime() - Date.now()) / DAY)
    const at = expires.toISOString()
    if (days < 0) return { what, is: 'wrong', why: `it expired on ${at}, and clients refuse it. Renew it.` }
    if (days < EXPIRES_SOON) return { what, is: 'note', why: `it expires on ${at}, in ${days} days. Renew it.` }
    return { what, is: 'ok', why: `the key belongs to it, and it is valid for ${days} days` }
  } catch (error) {
    return wrong(what, error)
  }
}

const DAY = 86_400_000
/** Days. Certificates are usually renewed a month before they expire. */
const EXPIRES_SOON = 14
