/** A server's no: a reply of 400 or above (RFC 5321 §4.2). */
export interface SmtpRefusal {
  /** The command that it answers: CONN is the connection itself, DATA also the end of the mail. */
  readonly command: string
  readonly code: number
  /** The enhanced status code (RFC 3463), such as 5.1.1, if there is one. */
  readonly status: string | undefined
  readonly text: string
}

/** What a no means for the mail. `alone`: it says nothing about other mails. */
export type Judgement =
  | { readonly is: 'unreached'; readonly alone?: true }
  | { readonly is: 'refused' }
  | { readonly is: 'misconfigured' }

/** Subjects and details (RFC 3463 §3) that are about the sender, the login or the server, wherever they are said. */
const ABOUT_US = /^\d\.(?:7\.|3\.|5\.|1\.[78]$)/
/** The same in words, where a code leaves it open. */
const SAID_ABOUT_US = /\brelay|authenticat|authori[sz]ed|\bverified|\bsender\b/i
/**
 * The same, whatever the code is: Gmail's `550 5.4.5 Daily user sending limit exceeded`, and Microsoft's `554 5.2.252
 * SendAsDenied`.
 */
const ABOUT_OUR_SENDING = /\bsending\b|\bSendAs/i
/**
 * Our commands are not understood, or a login or TLS is missing, or the server leaves (RFC 5321 §4.2.2, RFC 4954 §6,
 * RFC 7504).
 */
const CODES_ABOUT_US = new Set([421, 500, 502, 503, 504, 521, 530, 534, 535, 538, 555])

/**
 * Whom a no is about, and so what becomes of the mail. About us are: codes of policy and login (x.7), of the system (x.3),
 * of the protocol (x.5) or of the sender (x.1.7, x.1.8); 421, 500, 502, 503, 504, 521, 530, 534, 535, 538 and 555; words
 * of relaying, login or sender where a code is missing or vague (x.1.0); and words of our sending, such as a daily limit.
 *
 * | reply                                                   | the mail                                               |
 * |---------------------------------------------------------|--------------------------------------------------------|
 * | 4xx to RCPT TO, not about us (450 4.1.2, 450 4.2.1)     | unreached, alone: is tried again, and others go on     |
 * | 421 to EHLO (Google, about the name that we say)        | misconfigured: waits with all others                   |
 * | any other 4xx                                           | unreached: is tried again                              |
 * | 5xx to the connection, EHLO, STARTTLS, AUTH, MAIL FROM  | misconfigured: waits with all others                   |
 * | 5xx to RCPT TO or DATA about us (550 5.7.1, 553 5.1.8)  | misconfigured                                          |
 * | any other 5xx to these (550 5.1.1, 552 5.2.2, 554 5.6.0) | refused: is abandoned                                   |
 *
 * A mail is held back rather than abandoned where a reply can mean both, since servers say late what is about the sender.
 * Visitors choose recipients: one that a server cannot find, or does not want yet, must not hold up the others.
 */
export function judgeRefusal(no: SmtpRefusal): Judgement {
  const { command, code } = no
  if (command === 'EHLO' && code === 421) return { is: 'misconfigured' }
  if (code < 500)
    return command === 'RCPT TO' && !isAboutUs(no) ? { is: 'unreached', alone: true } : { is: 'unreached' }
  if (command !== 'RCPT TO' && command !== 'DATA') return { is: 'misconfigured' }
  return { is: isAboutUs(no) ? 'misconfigured' : 'refused' }
}

function isAboutUs({ code, status = '', text }: SmtpRefusal): boolean {
  if (CODES_ABOUT_US.has(code) || ABOUT_US.test(status) || ABOUT_OUR_SENDING.test(text)) return true
  // x.y.0 names no detail (RFC 3463 §3).
  return /^$|\.0$/.test(status) && SAID_ABOUT_US.test(text)
}
