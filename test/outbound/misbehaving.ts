import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { type Attempt, attempting } from '../../src/outbound/attempt.ts'
import { type Call, type CallerSettings, caller } from '../../src/outbound/caller.ts'
import type { Reply } from '../../src/outbound/reply.ts'
import type { Failure } from '../../src/waitlist/ports/destination.ts'

export const KEY = 'sk_live_0123456789abcdef'

/** With everything that must never be in a log. */
export const create: Call = {
  to: 'create a contact',
  method: 'POST',
  path: '/contacts',
  body: { email: 'ada@example.com', firstName: 'Ada', lastName: 'Lovelace' },
}

export interface Received {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export interface Misbehaving {
  readonly base: string
  /** Every request that arrived whole, whatever became of it. */
  readonly received: Received[]
  /** Connections that are open now, and how many there ever were. */
  readonly sockets: Set<Socket>
  readonly connections: () => number
}

/** A server of HTTP that answers, or does not, as the test says. */
export async function serving(
  t: Pick<TestContext, 'after'>,
  answer: (response: ServerResponse, request: IncomingMessage) => void,
): Promise<Misbehaving> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    received.push({ method: request.method!, url: request.url!, headers: request.headers, body })
    answer(response, request)
  })
  return { ...(await listening(t, server)), received }
}

/** A server of bytes. `received` stays empty: what arrives is the test's own affair. */
export async function accepting(t: Pick<TestContext, 'after'>, take: (socket: Socket) => void): Promise<Misbehaving> {
  return { ...(await listening(t, createTcpServer(take))), received: [] }
}

export async function listening(t: Pick<TestContext, 'after'>, server: Server): Promise<Omit<Misbehaving, 'received'>> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { base, sockets, connections: () => connections }
}

/** Makes one call an attempt of its own, with this time limit; or with a long one, and this signal to leave. */
export type Calling = (call: Call, limit: number | AbortSignal) => Promise<Reply | Failure>

/** Calls with a key, at a rate that is no hindrance unless the test says another. */
export function calling(t: Pick<TestContext, 'after'>, base: string, settings: Partial<CallerSettings> = {}): Calling {
  const rate = { calls: 1_000, per: 1_000, connections: 10 }
  const { call, close } = caller({ base, headers: { authorization: `Bearer ${KEY}` }, rate, ...settings })
  t.after(close)
  return alone(call)
}

export const never = new AbortController().signal

export const alone =
  (call: (call: Call, attempt: Attempt) => Promise<Reply | Failure>): Calling =>
  (one, limit) =>
    typeof limit === 'number'
      ? attempting(limit, never, attempt => call(one, attempt))
      : attempting(patient, limit, attempt => call(one, attempt))

/** The class of an outcome, and that its reason is one line, says what the call was for, and betrays nothing. */
export function classOf(outcome: Reply | Failure): string {
  const why = outcome.is === 'answered' ? outcome.summary : outcome.why
  assert.match(why, /^create a contact: [^\n]+$/)
  assert.doesNotMatch(why, /ada|lovelace|example|sk_live|0123456789abcdef/i)
  return outcome.is
}

/** Long enough for everything that comes at all. */
export const patient = 20_000
export const impatient = 1_000
