import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** What a server answers: the connection, a command, or the end of a mail. */
export type Moment = 'greeting' | 'AUTH' | 'MAIL' | 'RCPT' | 'the end'

/** What the server does instead of answering well: says something else, or something to the connection. */
export type Deed = string | ((client: Socket) => void)

export interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly source: Buffer
  readonly secure: boolean
  /** Who was logged in. */
  readonly user: string | null
  /** What the client called itself. */
  readonly greeted: string
}

export interface MailServer {
  readonly host: string
  readonly port: number
  /** Every mail that arrived whole, in order of arrival. */
  readonly mails: readonly ReceivedMail[]
  /** Connections that are open. */
  open(): number
  /** How many answers to this were due so far. */
  count(moment: Moment): number
}

export interface MailServerOptions extends SMTPServerOptions {
  /** The only login; none: nobody needs one. */
  readonly login?: { readonly user: string; readonly password: string }
  /** Null: it answers well. `count`: how often this answer was due, from 1. */
  readonly deed?: (moment: Moment, count: number, address: string) => Deed | null
}

type Callback = (error?: Error | null) => void

/** A mail server (npm smtp-server) on a free port of 127.0.0.1 until the test ends, which misbehaves where it is told to. */
export async function startMailServer(
  test: Pick<TestContext, 'after'>,
  { login, deed = () => null, ...options }: MailServerOptions = {},
): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const counts = new Map<Moment, number>()

  function answer(moment: Moment, session: { readonly id: string }, callback: Callback, address = ''): void {
    const count = (counts.get(moment) ?? 0) + 1
    counts.set(moment, count)
    const instead = deed(moment, count, address)
    if (instead === null) return callback()
    if (typeof instead === 'function') return instead(socketOf(session))
    const [code, text] = [Number(instead.slice(0, 3)), instead.slice(4)]
    callback(Object.assign(new Error(text), { responseCode: code }))
  }

  const socketOf = ({ id }: { readonly id: string }) =>
    [...smtp.connections].find(({ session }) => session.id === id)!._socket

  const smtp = new SMTPServer({
    disabledCommands: ['STARTTLS', ...(login === undefined ? ['AUTH'] : [])],
    authOptional: login === undefined,
    disableReverseLookup: true,
    allowInsecureAuth: true,
    onConnect: (session, callback) => answer('greeting', session, callback),
    onAuth({ username, password }, session, callback) {
      const isRight = username === login?.user && password === login?.password
      answer('AUTH', session, error => {
        if (error || isRight) callback(error ?? null, { user: username! })
        else callback(new Error('Invalid username or password'))
      })
    },
    onMailFrom: (_, session, callback) => answer('MAIL', session, callback),
    onRcptTo: ({ address }, session, callback) => answer('RCPT', session, callback, address),
    async onData(stream, session, callback) {
      const source = Buffer.concat(await stream.toArray())
      const { mailFrom, rcptTo } = session.envelope
      mails.push({
        from: mailFrom === false ? '' : mailFrom.address,
        to: rcptTo.map(({ address }) => address),
        source,
        secure: session.secure,
        user: session.user === undefined ? null : String(session.user),
        greeted: String(session.hostNameAppearsAs),
      })
      answer('the end', session, callback)
    },
    ...options,
  })
  smtp.on('error', () => {})
  const listener = smtp.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  test.after(async () => {
    for (const { _socket } of smtp.connections) _socket.destroy()
    await new Promise<void>(resolve => smtp.close(() => resolve()))
  })
  return {
    host: '127.0.0.1',
    port: (listener.address() as AddressInfo).port,
    mails,
    open: () => smtp.connections.size,
    count: moment => counts.get(moment) ?? 0,
  }
}

export const reset: Deed = client => void client.resetAndDestroy()
export const hang: Deed = () => {}
