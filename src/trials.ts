import { openOutside } from './compose.ts'
import type { Config } from './config.ts'
import { type CertificateFiles, expiryOf, firstCertificate } from './http/certificates.ts'
import { nameOf, type RedisLocation } from './limiters/redis-url.ts'
import { type Operator, operatorOf } from './operator.ts'
import { OperatorError, type Provider } from './waitlist/ports.ts'

/** The result of trying one part of the configuration. */
export interface Trial {
  readonly what: string
  readonly is: 'ok' | 'wrong'
  readonly why: string
}

const NO_PROVIDER: Trial = { what: 'provider', is: 'ok', why: 'none; the database is the list' }
const NO_DESTINATION: Trial = { what: 'destinations', is: 'ok', why: 'none' }

/** Tries the store, the shared limiter, the certificate, the provider and the destinations, and changes none of them. */
export async function tryAll(config: Config): Promise<readonly Trial[]> {
  const {
    redis,
    server: { tls },
  } = config
  const operator = await operatorOf(config)
  const { provider, destinations, channels } = await openOutside(config)
  const outside = [provider, ...destinations, ...channels]
  const mailGood = config.mail?.server.login ? 'the server accepts the login' : 'the server greets; no login is set'
  const trial = async (what: string, good: string, check: Provider['check']): Promise<Trial> => {
    // Each check has its own timeout.
    const failure = await check(new AbortController().signal)
    return failure === null ? { what, is: 'ok', why: good } : { what, is: 'wrong', why: failure.why }
  }
  try {
    const trials = await Promise.all([
      tried('database', operator.look),
      tried('rate limit', async () => (redis === null ? 'in the memory of each process' : askLimiter(redis))),
      ...(tls === null ? [] : [tried('certificate', async () => certificateIn(tls))]),
      provider
        ? trial(`provider ${provider.name}`, 'the key and the settings are accepted', provider.check)
        : NO_PROVIDER,
      ...(destinations.length + channels.length === 0 ? [NO_DESTINATION] : []),
      ...destinations.map(({ name, check }) =>
        trial(name, name === 'mail' ? mailGood : 'the receiver accepts what is sent', check),
      ),
      ...channels.map(({ name, check }) => trial(name, 'a test message was posted', check)),
    ])
    const set = [...outside, provider?.automation].map(each => each?.name)
    return trials[0].is === 'ok' ? [...trials, ...(await waiting(operator, set))] : trials
  } finally {
    await Promise.all(outside.map(each => each?.close()))
  }
}

/**
 * Sends a mail to an address of the operator's, as a contact gets it but with a sample name.
 *
 * @throws {OperatorError} when no mails are set up.
 */
export async function tryMail({ mail: settings }: Config, email: string): Promise<Trial> {
  if (settings === null) throw new OperatorError('SMTP_URL is not set: no mail can be sent')
  const { mail } = await import('./destinations/mail.ts')
  const destination = mail(settings)
  try {
    const result = await destination.try(email, new AbortController().signal)
    const what = `mail to ${email}`
    if (result.is !== 'delivered') return { what, is: 'wrong', why: result.why }
    return { what, is: 'ok', why: `the server took it${result.answer ? `: ${result.answer}` : ''}` }
  } finally {
    await destination.close()
  }
}

/** What waits for each destination, and how the last attempt ended, which reveals a current outage. `set`: those in force. */
async function waiting({ backlog }: Operator, set: readonly (string | undefined)[]): Promise<readonly Trial[]> {
  try {
    return Object.entries((await backlog()).waiting).map(([destination, { count, why }]) => {
      const idle = set.includes(destination) ? '' : '; it is not set, so they go on waiting'
      const last = why === null ? '' : `; the last attempt: ${why}`
      return { what: `waiting for ${destination}`, is: 'ok', why: `${count}${idle}${last}` }
    })
  } catch (error) {
    return [wrong('what waits', error)]
  }
}

async function tried(what: string, look: () => Promise<string>): Promise<Trial> {
  try {
    return { what, is: 'ok', why: await look() }
  } catch (error) {
    return wrong(what, error)
  }
}

/** Anything but an error for the operator is a bug, and is thrown. */
function wrong(what: string, error: unknown): Trial {
  if (!(error instanceof OperatorError)) throw error
  return { what, is: 'wrong', why: error.message }
}

/** @throws {OperatorError} when the pair cannot be used, or the certificate has expired. */
function certificateIn(files: CertificateFiles): string {
  const expiry = expiryOf(firstCertificate(files))
  if (expiry?.isExpired) throw new OperatorError(expiry.sentence)
  return expiry?.sentence ?? 'the key belongs to it, and it does not expire within 14 days'
}

/** One attempt under a name that no client has, repeated until there is a connection. */
async function askLimiter(location: RedisLocation): Promise<string> {
  const { redisLimiter } = await import('./limiters/redis.ts')
  const limiter = redisLimiter({ location, limit: 1_000, window: 1, timeout: 1_000 })
  try {
    for (const until = performance.now() + 3_000; ; ) {
      try {
        await limiter.take('waitlist check')
        return `${nameOf(location)} counts`
      } catch (error) {
        if (performance.now() > until) throw new OperatorError(`${nameOf(location)}: ${(error as Error).message}`)
        await new Promise(resolve => setTimeout(resolve, 100))
      }
    }
  } finally {
    await limiter.close()
  }
}
