import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

/** What a server answers: the connection, a command, or the end of a mail. */
export const moments = [
  'greeting',
  'EHLO',
  'STARTTLS',
  'AUTH',
  'MAIL',
  'RCPT',
  'DATA',
  'the end',
  'RSET',
  'QUIT',
] as const
export type Moment = (typeof moments)[number]

/** What is done to the client instead of passing the server's reply on. */
export type Deed = (client: Socket, reply: string) => void

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
  /** Every mail that the server accepted, in order of arrival. */
  readonly mails: readonly ReceivedMail[]
  /** Connections so far, and those that are open. */
  readonly connections: { readonly all: number; readonly open: number }
  /** How many replies to this were due so far. */
  count(moment: Moment): number
  /** Resolves when so many were. */
  reached(moment: Moment, count: number): Promise<void>
}

export interface MailServerOptions extends SMTPServerOptions {
  /** The only login; none: nobody needs one. */
  readonly login?: { readonly user: string; readonly password: string }
  /** Null: the reply is passed on. `count`: how often it was due, from 1. */
  readonly deed?: (moment: Moment, count: number) => Deed | null
}

/**
 * A mail server (npm smtp-server) on a free port of 127.0.0.1 until the test ends, which misbehaves where it is told to.
 * What is done stands between the client and the server, so the server has done its part before.
 */
export async function startMailServer(
  test: Pick<TestContext, 'after'>,
  { login, deed = () => null, ...options }: MailServerOptions = {},
): Promise<MailServer> {
  const mails: ReceivedMail[] = []
  const smtp = new SMTPServer({
    disabledCommands: ['STARTTLS', ...(login === undefined ? ['AUTH'] : [])],
    authOptional: login === undefined,
    disableReverseLookup: true,
    allowInsecureAuth: true,
    onAuth({ username, password }, _, callback) {
      const isRight = username === login?.user && password === login?.password
      if (isRight) callback(null, { user: username! })
      else callback(new Error('Invalid username or password'))
    },
    onData(stream, session, callback) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          source: Buffer.concat(chunks),
          secure: session.secure,
          user: session.user === undefined ? null : String(session.user),
          greeted: String(session.hostNameAppearsAs),
        })
        callback(null)
      })
    },
    ...options,
  })
  smtp.on('error', () => {})
  const real = smtp.listen(0, '127.0.0.1')
  await once(real, 'listening')

  const connections = { all: 0, open: 0 }
  const counts = new Map<Moment, number>()
  const sockets = new Set<Socket>()
  const front = createServer({ noDelay: true }, client => {
    connections.all++
    connections.open++
    const { port } = real.address() as AddressInfo
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    }
    client.on('close', () => {
      connections.open--
      upstream.destroy()
    })
    upstream.on('end', () => client.end())
    between(client, upstream, options.secure === true, (moment, reply) => {
      const count = (counts.get(moment) ?? 0) + 1
      counts.set(moment, count)
      front.emit('reached')
      const done = deed(moment, count)
      if (done === null) client.write(reply, 'latin1')
      else done(client, reply)
      return done === null
    })
  })
  front.listen(0, '127.0.0.1')
  await once(front, 'listening')
  test.after(async () => {
    for (const socket of sockets) socket.destroy()
    front.close()
    await new Promise<void>(resolve => smtp.close(() => resolve()))
  })
  return {
    host: '127.0.0.1',
    port: (front.address() as AddressInfo).port,
    mails,
    connections,
    count: moment => counts.get(moment) ?? 0,
    async reached(moment, count) {
      while ((counts.get(moment) ?? 0) < count) await once(front, 'reached')
    },
  }
}

/**
 * Follows a conversation until it is encrypted. `answered` passes a reply on, and says whether it did; what the client has
 * sent ahead (RFC 2920) is passed on after it.
 */
function between(
  client: Socket,
  upstream: Socket,
  secure: boolean,
  answered: (moment: Moment, reply: string) => boolean,
): void {
  const due: Moment[] = ['greeting']
  let mode: 'commands' | 'mail' | 'encrypted' = secure ? 'encrypted' : 'commands'
  let commands = ''
  let replies = ''
  let hasSender = false
  let hasRecipient = false
  const ahead: string[] = []
  function next(): void {
    const line = due.length === 0 ? ahead.shift() : undefined
    if (line === undefined) return
    const verb = line.slice(0, 8).split(' ', 1)[0]!.toUpperCase()
    const moment = moments.find(moment => moment === verb) ?? (verb === 'HELO' ? 'EHLO' : 'AUTH')
    if ((moment === 'RCPT' && !hasSender) || (moment === 'DATA' && !hasRecipient)) {
      client.write('554 5.5.1 No valid recipients\r\n')
      return next()
    }
    due.push(moment)
    upstream.write(`${line}\r\n`, 'latin1')
  }
  client.on('data', chunk => {
    if (mode === 'encrypted') return void upstream.write(chunk)
    commands += chunk.toString('latin1')
    if (mode === 'mail') {
      upstream.write(chunk)
      commands = commands.slice(-5)
      if (!/(?:^|\r\n)\.\r\n$/.test(commands)) return
      mode = 'commands'
      commands = ''
      due.push('the end')
      return
    }
    const lines = commands.split('\r\n')
    commands = lines.pop()!
    ahead.push(...lines)
    next()
  })
  upstream.on('data', chunk => {
    if (mode === 'encrypted') return void client.write(chunk)
    replies += chunk.toString('latin1')
    for (;;) {
      const [reply] = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(replies) ?? []
      if (reply === undefined) return
      replies = replies.slice(reply.length)
      const moment = due.shift()!
      // The client's next bytes are of another kind.
      if (moment === 'DATA' && reply.startsWith('354')) mode = 'mail'
      const isPassedOn = answered(moment, reply)
      if (moment === 'MAIL') hasSender = isPassedOn
      if (moment === 'MAIL' || moment === 'RCPT')
        hasRecipient = isPassedOn && moment === 'RCPT' && reply.startsWith('2')
      if (moment === 'STARTTLS' && reply.startsWith('220') && isPassedOn) mode = 'encrypted'
      next()
    }
  })
}

/** Replies instead of the server. */
export const say =
  (text: string): Deed =>
  client =>
    void client.write(`${text}\r\n`)
export const reset: Deed = client => void client.resetAndDestroy()
export const end: Deed = client => void client.end()
export const hang: Deed = () => {}
export const garbage: Deed = client => void client.write('SSH-2.0-OpenSSH_9.9\r\n')
export const halfALine: Deed = (client, reply) => void client.end(reply.slice(0, 5))
