import type { Config } from '../config/load.ts'
import { type Log, OperatorError } from '../config/operator.ts'
import { readDomains } from '../holds/domains.ts'
import { readMessages, translatable } from '../http/messages/file.ts'
import { paths } from '../http/paths.ts'
import { type CertificateFiles, readPair } from '../http/tls.ts'
import { TEST_SENTENCE } from '../notify/channel.ts'
import { type CheckOptions, type CheckResult, checkStored, tried } from '../operate/check.ts'
import { number } from '../operate/output.ts'
import { challengeOf, linkingOf, openDestinations } from './adapters.ts'

/** The event of which each mail tells. */
const letters = { welcome: 'joined', invite: 'invited', confirm: 'confirmation' } as const

/** Stands in for what all instances share, which is in the store. Nothing that it makes is given to anybody. */
const UNSHARED = '0'.repeat(64)
const silent: Log = { info() {}, warn() {}, error() {} }

type Try = (signal: AbortSignal) => Promise<{ readonly why: string } | null>

/**
 * Tries the store and everything outside that the settings name, and changes none of it. With `sendTest` the webhook, the
 * chats and the owner are sent a test message; nobody is sent anything otherwise.
 */
export async function checkAll(config: Config, sendTest = false): Promise<readonly CheckResult[]> {
  const { baseUrl, tls, blockedDomainsFile, messagesFile } = config
  const destinations = await openDestinations(config)
  const { provider, own, channels, names } = destinations
  const receivers = [
    ...own.filter(({ name }) => name !== 'mail').map(({ name, check }) => ({ name, check })),
    ...channels.map(({ name, send }) => ({ name, check: (signal: AbortSignal) => send(TEST_SENTENCE, signal) })),
  ]
  const challenge = await challengeOf(config, async () => UNSHARED, silent)
  const server = config.mail && (await import('../mail/send.ts')).mailServer(config.mail)
  const calls = (what: string, good: string, attempt: Try) =>
    tried(what, async () => {
      // Each has its own timeout.
      const failure = await attempt(new AbortController().signal)
      if (failure !== null) throw new OperatorError(failure.why)
      return good
    })
  try {
    const [stored, ...results] = await Promise.all([
      checkStored(config, provider === null ? names : [provider.name, ...names]),
      ...(baseUrl === null ? [] : [tried('public address', () => reached(baseUrl))]),
      ...(tls === null ? [] : [certificateIn(tls)]),
      ...(challenge === null ? [] : [calls(`challenge ${challenge.name}`, 'the settings are good', challenge.check)]),
      ...(blockedDomainsFile === null ? [] : [tried('email domains', () => domainsIn(blockedDomainsFile))]),
      ...(messagesFile === null ? [] : [messagesIn(messagesFile)]),
      provider === null
        ? tried('provider', () => 'none; the database is the list')
        : calls(`provider ${provider.name}`, 'the key and the settings are accepted', provider.check),
      ...(server === null
        ? []
        : [calls('mail', 'the server accepts the connection, and the login if one is set', server.check)]),
      ...receivers.map(({ name, check }) =>
        sendTest
          ? calls(name, 'it took a test message', check)
          : tried(name, () => 'not tried; --send-test sends a test message'),
      ),
    ])
    return [...stored, ...results]
  } finally {
    await Promise.all([destinations.close(), server?.close()])
  }
}

/**
 * Sends a mail to an address of the operator's, as a contact gets it but with a sample name. Its links are nobody's.
 *
 * @throws {OperatorError} when no mails are set up, or none of this kind.
 */
export async function checkMail(config: Config, email: string, letter: CheckOptions['letter']): Promise<CheckResult> {
  const { mail } = config
  if (mail === null) throw new OperatorError('SMTP_URL is not set: no mail can be sent')
  if (letter === 'confirm' && !config.confirm)
    throw new OperatorError('CONFIRM=mail is not set: nobody is asked to confirm an address')
  const { links } = await linkingOf(config, async () => UNSHARED)
  const { mailDestination } = await import('../mail/destination.ts')
  const { mailServer } = await import('../mail/send.ts')
  const destination = mailDestination(mail, () => links, mailServer(mail))
  try {
    const result = await destination.sample(letters[letter], email, new AbortController().signal)
    const what = `mail to ${email}`
    if (result.is !== 'delivered') return { what, is: 'wrong', why: result.why }
    return { what, is: 'ok', why: `the server took it${result.response ? `: ${result.response}` : ''}` }
  } finally {
    await destination.close()
  }
}

/** Milliseconds. */
const ANSWER = 5_000

/** Whether a visitor reaches the service through its public address. A redirect would make a GET of a signup. */
async function reached(baseUrl: string): Promise<string> {
  let answer: Response
  let text: string
  try {
    answer = await fetch(baseUrl + paths.health, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER) })
    text = await answer.text()
  } catch (error) {
    const { message, cause = error } = error as Error
    throw new OperatorError(`${baseUrl} is not reached: ${(cause as Error).message || message}`)
  }
  if (answer.status === 200 && text.includes('"status":"ok"')) return `${baseUrl} is reached`
  throw new OperatorError(`${baseUrl} answers ${answer.status}, and not as a healthy service does`)
}

function domainsIn(path: string): string {
  const all = [...readDomains(path).values()]
  const blocked = all.filter(isBlocked => isBlocked).length
  return `${number(blocked)} blocked, ${number(all.length - blocked)} excepted`
}

/** What a language lacks is in English, which is worth a note. */
async function messagesIn(path: string): Promise<CheckResult> {
  let gaps: readonly string[] = []
  const result = await tried('messages', () => {
    const translations = [...readMessages(path)]
    const all = Object.keys(translatable).length
    gaps = translations
      .map(([tag, translation]) => ({ tag, lacks: all - Object.keys(translation).length }))
      .filter(({ tag, lacks }) => lacks > 0 && tag !== 'en')
      .map(({ tag, lacks }) => `${tag} lacks ${lacks} of ${all} sentences, which are in English`)
    return `in ${translations.map(([tag]) => tag).join(', ')}`
  })
  return gaps.length === 0 ? result : { what: 'messages', is: 'note', why: gaps.join('; ') }
}

/** An expired certificate is wrong; one that soon will be is worth a note, since most are renewed by themselves. */
async function certificateIn(files: CertificateFiles): Promise<CheckResult> {
  const what = 'certificate'
  let expires = new Date(0)
  const result = await tried(what, () => {
    expires = readPair(files).expires
    return 'the key belongs to it'
  })
  if (result.is === 'wrong') return result
  const days = Math.floor((expires.getTime() - Date.now()) / DAY)
  const at = expires.toISOString()
  if (days < 0) return { what, is: 'wrong', why: `it expired on ${at}, and clients refuse it. Renew it.` }
  if (days < EXPIRES_SOON) return { what, is: 'note', why: `it expires on ${at}, in ${days} days. Renew it.` }
  return { what, is: 'ok', why: `the key belongs to it, and it is valid for ${days} days` }
}

const DAY = 86_400_000
/** Days. Certificates are usually renewed a month before they expire. */
const EXPIRES_SOON = 14
