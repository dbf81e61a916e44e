import { randomUUID } from 'node:crypto'
import { type Attempt, attempting } from '../outbound/attempt.ts'
import { excerpt } from '../outbound/excerpt.ts'
import { pace } from '../outbound/pace.ts'
import type { DeliveryResult, Failure, OwnDestination } from '../waitlist/ports/destination.ts'
import { mailWriter, type Recipient } from './mail-message.ts'
import type { MailSettings } from './mail-settings.ts'
import { type SmtpFailure, smtpServer } from './smtp.ts'
import { judgeRefusal } from './smtp-reply.ts'

export interface MailDestination extends OwnDestination {
  /** Sends one mail with a sample name. Never rejects. */
  try(email: string, signal: AbortSignal): Promise<MailResult>
}

/** `answer`: what the server said when it took the mail. */
type MailResult = DeliveryResult & { readonly answer?: string }

/** Milliseconds for one attempt. */
const TIMEOUT = 20_000
/** Milliseconds until the server must be ready for the mail: an answer to its end is worth waiting for. */
const PREPARATION = 10_000
/** Milliseconds that a mail may wait for its turn. */
const LONGEST_QUEUE = 5_000
/** Few, since servers limit the sessions of a client, and since a crash leaves doubt about as many mails. */
const CONCURRENCY = 3

/**
 * Sends each new contact a welcome mail (RFC 5321, RFC 5322). A server cannot recognise a repeated mail, so one whose end
 * was sent and not answered is never sent again.
 *
 * @throws {OperatorError} when a template cannot be read, or has a placeholder that does not exist.
 */
export function mail({ server, rate, ...content }: MailSettings): MailDestination {
  const write = mailWriter(content)
  const { send, greet, close } = smtpServer(server, content.heloName)
  const { enter } = pace({ calls: 1, per: 60_000 / rate, connections: CONCURRENCY })
  const { user = '', password = '' } = server.login ?? {}
  /** As they are, and as they are sent (RFC 4616, AUTH LOGIN). What is shorter is no secret, but part of many words. */
  const inClear = [user, password, `\0${user}\0${password}`]
  const helo = `; we call ourselves ${content.heloName}: set BASE_URL to the public address`
  const hints: Readonly<Record<string, string>> = {
    STARTTLS: '; nothing is sent unencrypted, so try smtps://',
    EHLO: helo,
    HELO: helo,
  }
  const secrets = [...inClear, ...inClear.map(inBase64)].filter(text => text.length > 3)

  /** One mail, in its turn. */
  async function post(recipient: Recipient, signal: AbortSignal, mayBegin?: () => boolean): Promise<MailResult> {
    const message = await write(recipient)
    const work = async (attempt: Attempt): Promise<MailResult> => {
      const done = await enter({ longest: LONGEST_QUEUE, rank: attempt.rank, over: attempt.over })
      if (done === null || attempt.over.aborted || !attempt.mayBegin()) {
        done?.()
        return { is: 'unreached', why: 'send the mail: not sent, its turn did not come in time', notSent: true }
      }
      try {
        attempt.begin()
        const { over } = attempt
        const mail = { from: content.from.address, to: recipient.email, message }
        const outcome = await send(mail, preparation(over), over)
        const sent = [recipient.name, recipient.email]
        if (outcome.is !== 'accepted') return judged('send the mail', outcome, attempt, sent)
        return { is: 'delivered', answer: cleaned(outcome.said, sent) }
      } finally {
        done()
      }
    }
    return attempting(TIMEOUT, signal, work, mayBegin)
  }

  const cleaned = (said: string, sent: readonly string[]): string => excerpt(said, sent, secrets)

  function judged(to: string, outcome: SmtpFailure, { over, left }: Attempt, sent: readonly string[]) {
    if (outcome.is === 'answered with a no') {
      const { command, code, status, text } = outcome.no
      const said = cleaned(text, sent)
      const what = command === 'CONN' ? 'the connection' : command
      const answer = [code, status, said && `(${said})`].filter(Boolean).join(' ')
      const why = `${to}: ${what} was answered with ${answer}${hints[command] ?? ''}`
      // Without the words of the contact, who chose the address that a reply repeats.
      return { ...judgeRefusal({ ...outcome.no, text: said }), why }
    }
    if (outcome.is === 'impossible')
      return { is: 'misconfigured', why: `${to}: ${cleaned(outcome.why, sent)}` } as const
    const why = over.aborted && left() > 0 ? 'cut off by our own stop' : outcome.why
    return { is: outcome.sent ? 'unclear' : 'unreached', why: `${to}: ${cleaned(why, sent)}` } as const
  }

  return {
    name: 'mail',
    repeatable: 0,
    timeout: TIMEOUT,
    concurrency: CONCURRENCY,

    async deliver({ id, contact: { name, email } }, signal, mayBegin) {
      const { answer, ...result } = await post({ id, name, email }, signal, mayBegin)
      return result
    },

    try: (email, signal) => post({ id: `check_${randomUUID()}`, name: 'Ada Lovelace', email }, signal),

    /** Greets the server and logs in. */
    check(signal) {
      return attempting(TIMEOUT, signal, async attempt => {
        attempt.begin()
        const outcome = await greet(preparation(attempt.over))
        return outcome && (judged('try the mail server', outcome, attempt, []) as Failure)
      })
    },

    close,
  }
}

const preparation = (over: AbortSignal): AbortSignal => AbortSignal.any([over, AbortSignal.timeout(PREPARATION)])
const inBase64 = (text: string): string => Buffer.from(text).toString('base64')
