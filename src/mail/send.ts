import { createTransport, type SendMailOptions } from 'nodemailer'
import type { DeliveryResult } from '../delivery/destination.ts'
import { isLoopback } from '../http-client/addresses.ts'
import { excerpt, type Failure } from '../http-client/call.ts'
import type { Mailbox, MailSettings } from './settings.ts'

export interface Mail {
  /** Letters, digits, dashes and underscores: unique to the mail, and the same when it is sent again. */
  readonly id: string
  readonly to: Mailbox
  readonly subject: string
  readonly text: string
  readonly html?: string | undefined
  /** The address at which the reader unsubscribes. */
  readonly unsubscribe?: string | undefined
}

/** `response`: what the server said when it accepted the mail. */
export type MailResult = DeliveryResult & { readonly response?: string }

/** Under way and waiting for the rate; a crash repeats as many. */
export const CONCURRENCY = 2
/** Milliseconds. */
const TIMEOUT = 20_000

export type MailServer = ReturnType<typeof mailServer>

/** The owner's mail server: one session, since only then does the pool keep the rate exactly. */
export function mailServer({ server, from, rate, heloName }: MailSettings) {
  const { host, port, secure, login } = server
  // Nobody else listens on our own loopback, whose servers have certificates of their own making.
  const isLocal = !secure && isLoopback(host)
  const pool = createTransport({
    ...{ pool: true, host, port, secure, name: heloName },
    ...(login && { auth: { user: login.user, pass: login.password } }),
    ...{ requireTLS: !secure && !isLocal, opportunisticTLS: isLocal, tls: { rejectUnauthorized: !isLocal } },
    ...{ maxConnections: 1, maxMessages: 100, rateLimit: 1, rateDelta: 60_000 / rate },
    // By itself it sends again what may have arrived.
    maxRequeues: 0,
    ...{ connectionTimeout: 10_000, socketTimeout: TIMEOUT, idleTimeout: 5_000 },
    ...{ disableFileAccess: true, disableUrlAccess: true },
  })
  const secrets = login === null ? [] : secretsOf(login)
  const failed = (error: unknown): MailResult => outcomeOf(error as SmtpError, secrets)

  return {
    /** Sends one mail. `signal` aborts it. Never rejects. */
    async send({ id, unsubscribe, ...mail }: Mail, signal: AbortSignal): Promise<MailResult> {
      const options: SendMailOptions = {
        ...mail,
        from,
        signal,
        messageId: `<${id}@${from.address.slice(from.address.indexOf('@') + 1)}>`,
        headers: {
          // RFC 3834 §5: no vacation responder answers it.
          'Auto-Submitted': 'auto-generated',
          ...(unsubscribe !== undefined && unsubscribeHeaders(unsubscribe)),
        },
      }
      try {
        const { response } = await pool.sendMail(options)
        return { is: 'delivered', response: excerpt(response, secrets) }
      } catch (error) {
        return failed(error)
      }
    },

    /** Greets the server and logs in: null when all is well. Never rejects. */
    async check(): Promise<Failure | null> {
      try {
        await pool.verify()
        return null
      } catch (error) {
        return failed(error) as Failure
      }
    },

    close: () => pool.close(),
  }
}

/** RFC 2369 §3.2; RFC 8058 §3.1 needs https. */
const unsubscribeHeaders = (link: string) => ({
  'List-Unsubscribe': `<${link}>`,
  ...(link.startsWith('https:') && { 'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click' }),
})

interface SmtpError extends Error {
  readonly code?: string
  readonly command?: string
  readonly response?: string
  readonly responseCode?: number
}

/** At RCPT TO these are about us all the same: our login, our reputation. */
const ABOUT_US = /^5\d\d[ -]5\.7\.|relay|authenti/i

/**
 * | reply                               | outcome                                               |
 * |-------------------------------------|-------------------------------------------------------|
 * | 5xx to RCPT TO, not about us        | refused: the address does not exist                   |
 * | 4xx to RCPT TO                      | unreachable, for this recipient only                  |
 * | 5xx to greeting, login or MAIL FROM | misconfigured                                         |
 * | any other 4xx or 5xx                | unreachable: a quota or a spam verdict; the mail waits |
 * | none                                | in doubt: it may have arrived                         |
 */
function outcomeOf(error: SmtpError, secrets: readonly string[]): MailResult {
  const { code, command = 'CONN', response = '', responseCode: status } = error
  if (status === undefined) {
    const why = excerpt(readable(error.message), secrets)
    return { is: code === 'EAUTH' || code === 'ETLS' || code === 'EMESSAGE' ? 'misconfigured' : 'in doubt', why }
  }
  const why = `${command === 'CONN' ? 'greeting' : command.replace(/^AUTH.*/, 'login')}: ${excerpt(response, secrets)}`
  if (command === 'RCPT TO' && !ABOUT_US.test(response)) {
    if (status >= 500) return { is: 'refused', why }
    if (status !== 421) return { is: 'unreachable', why, recipientOnly: true }
  }
  return { is: status >= 500 && !/^(?:RCPT TO|DATA)$/.test(command) ? 'misconfigured' : 'unreachable', why }
}

/** OpenSSL's errors are for its authors. */
function readable(message: string): string {
  if (message.includes('wrong version number')) return 'the server does not speak TLS on this port: try smtp://'
  return message.includes(':error:') ? 'TLS failed' : message
}

/** As they are, and as they are sent (RFC 4616, AUTH LOGIN). */
function secretsOf({ user, password }: { readonly user: string; readonly password: string }): readonly string[] {
  const plain = [user, password, `\0${user}\0${password}`]
  return [...plain, ...plain.map(text => Buffer.from(text).toString('base64'))]
}
