import { openChallenge } from '../challenges/index.ts'
import type { Config } from '../config/load.ts'
import { type Log, OperatorError } from '../config/operator.ts'
import { readDomains } from '../holds/domains.ts'
import { paths } from '../http/paths.ts'
import { readPair } from '../http/tls.ts'
import type { Failure } from '../http-client/call.ts'
import { readMessages } from '../messages/languages.ts'
import { TEST_SENTENCE } from '../notify/channel.ts'
import { bytes, type ExitCode, type Io, moment, number, plain, print, toJson } from '../operate/output.ts'
import { type Counts, countAll, LATE } from '../store/counts.ts'
import type { Tx } from '../store/database.ts'
import { type StoreLocation, withDatabase } from '../store/open.ts'
import { freeFor, MINIMUM_FREE } from '../store/sqlite/open.ts'
import { linksIn, openDestinations } from './adapters.ts'

/** The event that each mail is about. */
const letters = { welcome: 'joined', invite: 'invited', confirm: 'confirmation' } as const

interface CheckOptions {
  readonly quiet?: true
  readonly sendTest?: true
  /** An address that one mail is sent to. */
  readonly mail?: string
  readonly letter: keyof typeof letters
  readonly json?: true
}

/** `note`: it works, and the owner should know. */
interface CheckResult {
  readonly what: string
  readonly is: 'ok' | 'note' | 'wrong'
  readonly why: string
}

/**
 * Prints what is wrong with the settings, with what is stored and with what they name outside: a line each, or as
 * `{ok, checks: [{what, is, why}]}`. Exit code 1 if anything is wrong; a note is not.
 */
export async function check(
  config: Config,
  { quiet, sendTest, mail, letter, json }: CheckOptions,
  io: Io,
): Promise<ExitCode> {
  const checks = mail === undefined ? await checkAll(config, sendTest) : [await checkMail(config, mail, letter)]
  const ok = checks.every(({ is }) => is !== 'wrong')
  const shown = quiet ? checks.filter(({ is }) => is === 'wrong') : checks
  const lines = shown.map(({ what, is, why }) => `${is.padEnd(8)}${what}: ${plain(why)}\n`)
  await print(io, json ? [toJson({ ok, checks: shown })] : lines)
  return ok ? 0 : 1
}

/** Stands in for what all instances share, which is in the store: nobody is given what is made with it. */
const unshared = '0'.repeat(64)
const silent: Log = { info() {}, warn() {}, error() {} }

/** With `sendTest` the webhook, the chats and the owner are sent a test message. Nothing else is changed anywhere. */
async function checkAll(config: Config, sendTest: true | undefined): Promise<readonly CheckResult[]> {
  const { baseUrl, tls, blockedDomainsFile, messagesFile } = config
  const challenge = await openChallenge(config.challenge, async () => unshared, silent)
  const destinations = await openDestinations(config, linksIn(config, unshared))
  const { provider, own, channels, events, mailServer } = destinations
  const names = [provider, ...events].flatMap(each => each?.name ?? [])
  const receivers = [
    ...own.filter(({ name }) => name !== 'mail'),
    ...channels.map(({ name, send }) => ({ name, check: (signal: AbortSignal) => send(TEST_SENTENCE, signal) })),
  ]
  try {
    const results = await Promise.all([
      ...(baseUrl === null ? [] : [tried('public address', () => reached(baseUrl))]),
      ...(tls === null ? [] : [tried('certificate', () => validUntil(readPair(tls).expires))]),
      ...(challenge === null
        ? []
        : [tried(`challenge ${challenge.name}`, () => answered(challenge.check, 'the settings are good'))]),
      ...(blockedDomainsFile === null
        ? []
        : [tried('email domains', () => `${number(readDomains(blockedDomainsFile).size)} in the file`)]),
      ...(messagesFile === null
        ? []
        : [tried('messages', () => `in ${[...readMessages(messagesFile).keys()].join(', ')}`)]),
      provider === null
        ? tried('provider', () => 'none; the database is the list')
        : tried(`provider ${provider.name}`, () => answered(provider.check, 'the key and the settings are accepted')),
      ...(mailServer === null
        ? []
        : [
            tried('mail', () =>
              answered(mailServer.check, 'the server accepts the connection, and the login if one is set'),
            ),
          ]),
      ...receivers.map(({ name, check }) =>
        tried(name, () =>
          sendTest ? answered(check, 'it took a test message') : 'not tried; --send-test sends a test message',
        ),
      ),
    ])
    const warnings = config.warnings.map(why => ({ what: 'settings', is: 'note', why }) as const)
    return [...warnings, ...(await checkStored(config.store, names)), ...results]
  } finally {
    destinations.close()
  }
}

/**
 * Sends a mail to an address of the operator's, as a contact gets it but with a sample name and links of no contact.
 *
 * @throws {OperatorError} when no mails are set up, or none of this kind.
 */
async function checkMail(config: Config, email: string, letter: CheckOptions['letter']): Promise<CheckResult> {
  const { mail } = config
  if (mail === null) throw new OperatorError('SMTP_URL is not set: no mail can be sent')
  if (letter === 'confirm' && !config.confirm)
    throw new OperatorError('CONFIRM=mail is not set: nobody is asked to confirm an address')
  const { mailDestination } = await import('../mail/destination.ts')
  const { mailServer } = await import('../mail/send.ts')
  const server = mailServer(mail)
  const destination = mailDestination(mail, () => linksIn(config, unshared), server)
  const result = await destination.sample(letters[letter], email, new AbortController().signal)
  server.close()
  const what = `mail to ${email}`
  if (result.is !== 'delivered') return { what, is: 'wrong', why: result.why }
  return { what, is: 'ok', why: `the server took it${result.response ? `: ${result.response}` : ''}` }
}

/** Tries something that says what is good about it. Anything but an error for the operator is a bug, and is thrown. */
async function tried(what: string, run: () => Promise<string> | string): Promise<CheckResult> {
  try {
    return { what, is: 'ok', why: await run() }
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return { what, is: 'wrong', why: error.message }
  }
}

/** Makes a call, which has a timeout of its own. */
async function answered(call: (signal: AbortSignal) => Promise<Failure | null>, good: string): Promise<string> {
  const failure = await call(new AbortController().signal)
  if (failure === null) return good
  throw new OperatorError(failure.is === 'misconfigured' ? failure.why : `does not answer: ${failure.why}`)
}

/** Milliseconds. */
const TIMEOUT = 5_000

/** Whether a visitor reaches the service through its public address. A redirect would make a GET of a signup. */
async function reached(baseUrl: string): Promise<string> {
  const url = baseUrl + paths.health
  const answer = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT) }).catch(
    ({ message, cause }: Error) => {
      throw new OperatorError(
        `${baseUrl} is not reached: ${cause instanceof Error && cause.message ? cause.message : message}`,
      )
    },
  )
  const text = await answer.text().catch(() => '')
  if (answer.status === 200 && text.includes('"status":"ok"')) return `${baseUrl} is reached`
  throw new OperatorError(`${baseUrl} answers ${answer.status}, and not as a healthy service does`)
}

function validUntil(expires: Date): string {
  if (expires.getTime() > Date.now()) return `the key belongs to it, and it is valid until ${moment(expires)}`
  throw new OperatorError(`it expired at ${moment(expires)}, and clients refuse it. Renew it.`)
}

/** Whether the list is there and sound, and what waits. `names`: the destinations that are set. */
async function checkStored(store: StoreLocation, names: readonly string[]): Promise<readonly CheckResult[]> {
  try {
    return await withDatabase(store, ({ name, read }) =>
      read(async tx => [
        ...(store.kind === 'sqlite'
          ? await checkFile(tx, store.path)
          : [{ what: 'database', is: 'ok', why: name } as const]),
        ...unfinished(await countAll(tx), names),
      ]),
    )
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return [{ what: 'database', is: 'wrong', why: error.message }]
  }
}

/** Reads all of it, which takes seconds among millions. */
async function checkFile(tx: Tx, path: string): Promise<readonly CheckResult[]> {
  const [found] = await tx.all<{ integrity_check: string }>('pragma integrity_check(1)')
  const damage = found!.integrity_check.replaceAll(/\s+/g, ' ')
  if (damage !== 'ok') throw new OperatorError(`${path} is damaged: ${damage}. Stop the service and restore a backup.`)
  const free = freeFor(path)
  const isFull = free < MINIMUM_FREE
  return [
    { what: 'database', is: 'ok', why: `${path} is intact` },
    { what: 'disk', is: isFull ? 'wrong' : 'ok', why: `${bytes(free)} left${isFull ? ': signups are refused' : ''}` },
  ]
}

function* unfinished({ at, contacts, deliveries }: Counts, names: readonly string[]): Generator<CheckResult> {
  if (contacts.held > 0) {
    yield { what: 'held signups', is: 'note', why: `${number(contacts.held)}; list --state held shows them` }
  }
  for (const { destination, state, count, oldest, why } of deliveries) {
    if (state === 'abandoned') {
      const how = 'deliveries --state abandoned says why'
      yield { what: 'abandoned', is: 'note', why: `${number(count)} for ${destination}; ${how}` }
    } else if (state === 'waiting') {
      const since = oldest ?? at
      const isSet = names.includes(destination)
      const parts = [
        `${number(count)}, the oldest since ${moment(since)}`,
        ...(isSet ? [] : ['it is not set, so they go on waiting']),
        ...(why === null ? [] : [`the last attempt: ${why}`]),
      ]
      const isLate = isSet && at.getTime() - since.getTime() > LATE
      yield { what: `waiting for ${destination}`, is: isLate ? 'wrong' : isSet ? 'ok' : 'note', why: parts.join('; ') }
    }
  }
}
