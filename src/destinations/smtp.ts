import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Readable } from 'node:stream'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import { isLoopback } from '../http-client/addresses.ts'
import { lookup } from '../outbound/lookup.ts'
import type { SmtpLocation } from './mail-settings.ts'
import type { SmtpRefusal } from './smtp-reply.ts'

/** One mail: its recipient, and all its bytes. */
export interface Mail {
  readonly from: string
  readonly to: string
  readonly message: Buffer
}

/** How one mail ended. What servers say is as they said it: it may repeat addresses. */
export type SmtpOutcome =
  | { readonly is: 'accepted'; readonly said: string }
  | { readonly is: 'answered with a no'; readonly no: SmtpRefusal }
  /** The server cannot be asked for what we want. */
  | { readonly is: 'impossible'; readonly why: string }
  /** Cut off, timed out or garbage. `sent`: the end of the mail may have reached the server. */
  | { readonly is: 'not answered'; readonly why: string; readonly sent: boolean }

/** How a mail failed. */
export type SmtpFailure = Exclude<SmtpOutcome, { readonly is: 'accepted' }>

const CONNECT_TIMEOUT = 2_000
/** Milliseconds for which a session without work is kept: servers allow a minute at least, and may be few. */
const IDLE = 5_000
/** Mails in one session; many servers refuse the next after a hundred. */
const MAILS = 100
/** Milliseconds for the answer to RSET. */
const RESET = 2_000
/** Milliseconds for the answer to QUIT. */
const GOODBYE = 500
/** Bytes of one reply. Lines have 512 (RFC 5321 §4.5.3.1.5). */
const LARGEST_REPLY = 65_536
/** Bytes that are handed on at once, so that what the server has not taken is known not to be sent. */
const CHUNK = 16_384

interface Session {
  readonly connection: SMTPConnection
  mails: number
}

type SmtpError = Error & { readonly code?: string; readonly command?: string; readonly response?: string }

/** Sessions with one mail server. Those that ended well are kept for the next mail. */
export function smtpServer({ host, port, secure, login }: SmtpLocation, heloName: string) {
  // Nobody but this machine can listen on its own loopback, whose servers have certificates of their own making.
  const isLocal = !secure && isLoopback(host)
  const idle = new Map<Session, NodeJS.Timeout>()
  let closed = false

  async function open(over: AbortSignal): Promise<Session> {
    const connection = new SMTPConnection({
      connection: await connected(host, port, over),
      host,
      name: heloName,
      secure,
      requireTLS: !secure && !isLocal,
      opportunisticTLS: isLocal,
      tls: { rejectUnauthorized: !isLocal },
      maxResponseSize: LARGEST_REPLY,
      socketCloseTimeout: 0,
    })
    // Without a listener, an error between two steps would end the process.
    connection.on('error', () => {})
    try {
      await step(connection, over, done => connection.connect(done))
      if (login !== null) {
        const auth = { user: login.user, pass: login.password }
        await step(connection, over, done => connection.login(auth, done))
      }
    } catch (error) {
      if (outcomeOf(error as SmtpError, false).is === 'not answered') connection.close()
      else void quit({ connection })
      throw error
    }
    const session = { connection, mails: 0 }
    connection.once('end', () => forget(session))
    return session
  }

  function take(): Session | undefined {
    const [session] = idle.keys()
    if (session !== undefined) forget(session)
    return session
  }

  function keep(session: Session): void {
    if (closed || session.mails >= MAILS || session.connection.destroyed) return void quit(session)
    const timer = setTimeout(() => {
      forget(session)
      quit(session)
    }, IDLE)
    idle.set(session, timer)
  }

  /** Makes a session that a mail failed in ready for the next one (RFC 5321 §4.1.1.5), so that no refusal costs a login. */
  async function reset(session: Session, over: AbortSignal): Promise<void> {
    const { connection } = session
    try {
      await step(connection, AbortSignal.any([over, AbortSignal.timeout(RESET)]), done => connection.reset(done))
      keep(session)
    } catch {
      connection.close()
    }
  }

  function forget(session: Session): void {
    clearTimeout(idle.get(session))
    idle.delete(session)
  }

  return {
    /**
     * Sends a mail, in a session that is greeted, encrypted and logged in. Unless the server is ready for the mail before
     * `preparation` aborts, nothing is sent; `over` ends everything. Never rejects.
     */
    async send({ from, to, message }: Mail, preparation: AbortSignal, over: AbortSignal): Promise<SmtpOutcome> {
      let sent = false
      const body = inChunks(message, () => {
        sent = true
      })
      let session: Session | undefined
      try {
        session = take() ?? (await open(preparation))
        const { connection } = session
        session.mails++
        const tooLate = new AbortController()
        const late = () => sent || tooLate.abort()
        preparation.addEventListener('abort', late, { once: true })
        if (preparation.aborted) late()
        const envelope = { from, to: [to], size: message.length }
        const { response } = await step<SMTPConnection.SentMessageInfo>(
          connection,
          AbortSignal.any([over, tooLate.signal]),
          done => connection.send(envelope, body, (error, info) => done(error ?? garbled(info), info)),
        ).finally(() => preparation.removeEventListener('abort', late))
        keep(session)
        return { is: 'accepted', said: response }
      } catch (error) {
        const outcome = outcomeOf(error as SmtpError, sent)
        // In the middle of a mail, RSET would be a line of it.
        const isBetweenMails = !body.readableDidRead || body.readableEnded
        if (outcome.is === 'not answered' || !isBetweenMails) session?.connection.close()
        else if (session !== undefined) await reset(session, over)
        return outcome
      }
    },

    /** The same without a mail; null when all is well. */
    async greet(preparation: AbortSignal): Promise<SmtpFailure | null> {
      try {
        await quit(await open(preparation))
        return null
      } catch (error) {
        return outcomeOf(error as SmtpError, false)
      }
    },

    /** Ends the sessions that nobody uses. Others end with their mail. */
    async close(): Promise<void> {
      closed = true
      const sessions = [...idle.keys()]
      for (const session of sessions) forget(session)
      await Promise.all(sessions.map(quit))
    },
  }
}

/** The library would spend its timeout on the greeting too, and resolve names by itself. */
async function connected(host: string, port: number, over: AbortSignal): Promise<Socket> {
  const socket = connect({ host, port, lookup })
  const late = AbortSignal.timeout(CONNECT_TIMEOUT)
  try {
    await once(socket, 'connect', { signal: AbortSignal.any([over, late]) })
    return socket
  } catch (error) {
    socket.on('error', () => {}).destroy()
    if (over.aborted) throw tooLong()
    throw late.aborted ? new Error(`no connection within ${CONNECT_TIMEOUT} ms`) : error
  }
}

/** The library is content with the first digit of a reply. */
const garbled = (info: SMTPConnection.SentMessageInfo | undefined): SmtpError | null =>
  info === undefined || /^2\d\d\b/.test(info.response) ? null : Object.assign(new Error('no reply'), info)

const tooLong = () => new Error('no answer in time')

/**
 * One step of a conversation. The library reports some failures to the step and some as an event, and is silent when the
 * connection is closed on purpose. After one that was not answered the connection is of no use: what the server still says
 * would be taken for the answer to the next step.
 */
function step<Result>(
  connection: SMTPConnection,
  over: AbortSignal,
  run: (done: (error?: Error | null, result?: Result) => void) => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const settled = (error?: Error | null, result?: Result) => {
      connection.off('error', settled).off('end', ended)
      over.removeEventListener('abort', abort)
      if (error) reject(error)
      else resolve(result as Result)
    }
    const abort = () => settled(tooLong())
    // A failure that ends the connection is told a moment later.
    const ended = () => setImmediate(settled, new Error('the connection was closed'))
    connection.on('error', settled).on('end', ended)
    over.addEventListener('abort', abort, { once: true })
    run(settled)
    if (over.aborted) abort()
  })
}

/** RFC 5321 §4.1.1.10. */
function quit({ connection }: Pick<Session, 'connection'>): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => connection.close(), GOODBYE)
    const end = () => {
      clearTimeout(timer)
      resolve()
    }
    if (connection.destroyed) end()
    else {
      connection.once('end', end)
      connection.quit()
    }
  })
}

/** The library reads it when the server is ready for the mail. `atEnd` is called before the last bytes are handed on. */
function inChunks(message: Buffer, atEnd: () => void): Readable {
  let at = 0
  return new Readable({
    highWaterMark: 1,
    read() {
      if (at >= message.length) atEnd()
      this.push(at < message.length ? message.subarray(at, at + CHUNK) : null)
      at += CHUNK
    },
  })
}

function outcomeOf({ message, code, command = '', response }: SmtpError, sent: boolean): SmtpFailure {
  // What came before the connection broke may be half a reply, unless it announces the end (RFC 5321 §3.8).
  const isWhole = code !== 'ECONNECTION' || command !== 'CONN' || response?.startsWith('421')
  const [, digits, status, text] = /^([45]\d\d)(?:[ -](\d\.\d{1,3}\.\d{1,3}))?(.*)$/s.exec(response ?? '') ?? []
  if (isWhole && digits !== undefined) {
    const asked = command.startsWith('AUTH') ? 'AUTH' : command
    return { is: 'answered with a no', no: { command: asked, code: Number(digits), status, text: text! } }
  }
  // The library refuses by itself, before anything is sent.
  const isOurs = response === undefined && (command === 'API' || code === 'EMESSAGE') && code !== 'ECONNECTION'
  if (isOurs && !sent) return { is: 'impossible', why: message }
  return { is: 'not answered', why: response === undefined ? readable(message) : 'an answer that makes no sense', sent }
}

/** Errors of OpenSSL are for its authors. */
function readable(message: string): string {
  if (message.includes('wrong version number')) return 'it does not speak TLS from the start on this port: try smtp://'
  return message.includes(':error:') ? 'TLS failed' : message
}
