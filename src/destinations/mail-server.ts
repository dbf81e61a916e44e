import { type Attempt, attempting } from '../outbound/attempt.ts'
import { excerpt } from '../outbound/excerpt.ts'
import { pace, type Wish } from '../outbound/pace.ts'
import type { DeliveryResult, Failure } from '../waitlist/ports/destination.ts'
import type { MailSettings } from './mail-settings.ts'
import { type SmtpFailure, smtpServer } from './smtp.ts'
import { judgeRefusal } from './smtp-reply.ts'

/** `answer`: what the server said when it took the mail. */
export type MailResult = DeliveryResult & { readonly answer?: string }

/** One mail: for whom, and all its bytes. */
export interface Letter {
  readonly email: string
  readonly message: Buffer
}

/** How a mail waits: behind whom, and for how many milliseconds. */
export type Turn = Pick<Wish, 'rank' | 'longest'>

/** Milliseconds for one attempt. */
export const TIMEOUT = 20_000
/** Milliseconds until the server must be ready for the mail: an answer to its end is worth waiting for. */
const PREPARATION = 10_000
/** Few, since servers limit the sessions of a client, and since a crash leaves doubt about as many mails. */
export const CONCURRENCY = 3

export type MailServer = ReturnType<typeof mailServer>

/** The owner's mail server, with one rate and a few sessions for all that is sent. */
export function mailServer({ server, from, rate, heloName }: MailSettings) {
  const { send, greet, close } = smtpServer(server, heloName)
  const { enter } = pace({ calls: 1, per: 60_000 / rate, connections: CONCURRENCY })
  const { user = '', password = '' } = server.login ?? {}
  /** As they are, and as they are sent (RFC 4616, AUTH LOGIN). What is shorter is no secret, but part of many words. */
  const inClear = [user, password, `\0${user}\0${password}`]
  const helo = `; we call ourselves ${heloName}: set BASE_URL to the public address`
  const hints: Readonly<Record<string, string>> = {
    STARTTLS: '; nothing is sent unencrypted, so try smtps://',
    EHLO: helo,
    HELO: helo,
  }
  const secrets = [...inClear, ...inClear.map(inBase64)].filter(text => text.length > 3)

  const cleaned = (said: string): string => excerpt(said, secrets)

  function judged(to: string, outcome: SmtpFailure, { over, left }: Attempt) {
    if (outcome.is === 'answered with a no') {
      const { command, code, status, text } = outcome.no
      const said = cleaned(text)
      const what = command === 'CONN' ? 'the connection' : command
      const answer = [code, status, said && `(${said})`].filter(Boolean).join(' ')
      const why = `${to}: ${what} was answered with ${answer}${hints[command] ?? ''}`
      // Without the address, which the contact chose.
      return { ...judgeRefusal({ ...outcome.no, text: said }), why }
    }
    if (outcome.is === 'impossible') return { is: 'misconfigured', why: `${to}: ${cleaned(outcome.why)}` } as const
    const why = over.aborted && left() > 0 ? 'cut off by our own stop' : outcome.why
    return { is: outcome.sent ? 'unclear' : 'unreached', why: `${to}: ${cleaned(why)}` } as const
  }

  return {
    /** Sends one mail in its turn. `signal` and `mayBegin` as for `Provider.createContact`. Never rejects. */
    send({ email, message }: Letter, turn: Turn, signal: AbortSignal, mayBegin?: () => boolean): Promise<MailResult> {
      const work = async (attempt: Attempt): Promise<MailResult> => {
        const done = await enter({ ...turn, over: attempt.over })
        if (done === null || attempt.over.aborted || !attempt.mayBegin()) {
          done?.()
          return { is: 'unreached', why: 'send the mail: not sent, its turn did not come in time', notSent: true }
        }
        try {
          attempt.begin()
          const { over } = attempt
          const outcome = await send({ from: from.address, to: email, message }, preparation(over), over)
          if (outcome.is !== 'accepted') return judged('send the mail', outcome, attempt)
          return { is: 'delivered', answer: cleaned(outcome.said) }
        } finally {
          done()
        }
      }
      return attempting(TIMEOUT, signal, work, mayBegin)
    },

    /** Greets the server and logs in: null when all is well. Never rejects. */
    check(signal: AbortSignal): Promise<Failure | null> {
      return attempting(TIMEOUT, signal, async attempt => {
        attempt.begin()
        const outcome = await greet(preparation(attempt.over))
        return outcome && (judged('try the mail server', outcome, attempt) as Failure)
      })
    },

    close,
  }
}

const preparation = (over: AbortSignal): AbortSignal => AbortSignal.any([over, AbortSignal.timeout(PREPARATION)])
const inBase64 = (text: string): string => Buffer.from(text).toString('base64')
