import type { EventEmitter } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import { throttle } from '../delivery/throttle.ts'
import type { Log } from '../waitlist/ports/log.ts'
import * as limits from './limits.ts'

export type NodeServer = Server | SecureServer

export interface ConnectionBounds {
  /** Connections in all. */
  readonly all: number
  /** Connections of one client. */
  readonly share: number
  /** The client behind a socket's address; null for a trusted proxy, which brings many clients and so has no share. */
  clientOf(peer: string): string | null
  readonly log: Log
}

interface Connection {
  readonly socket: Socket
  readonly client: string | null
  /** Whether a request is under way. */
  isBusy: boolean
  /** Called at the end of a request. Made once for all requests of the connection. */
  readonly answered: () => void
}

/** Milliseconds from the beginning of a stop until connections are cut, so that the whole stop takes less than 10 s. */
const GRACE = 7_000
/** Milliseconds. Connections become idle one after the other. */
const SWEEP_INTERVAL = 50

/** Milliseconds between two lines in the log. */
const QUIET = 10_000
/** How many connections were cut since the last line, and why. */
const none = { overShare: 0, overAll: 0, refused: 0, unread: 0 }
/** Its client has more than its share, all places are taken, none is idle to make room, or its client reads no answers. */
type Drop = keyof typeof none

/**
 * Bounds the open connections of several servers together, so that no client can shut the others out. A client with more
 * than its share loses the connection that has been idle for longest. When all are taken, the one that has been idle for
 * longest makes room, whichever client opened it. If none is idle, the new one is refused. A connection is idle while it has
 * no request under way, even if it is still in its TLS handshake. Connections that are cut for other reasons are logged too.
 */
export function boundConnections({ all, share, clientOf, log }: ConnectionBounds) {
  const open = new Map<Socket, Connection>()
  const servers: NodeServer[] = []
  /** Of those that are idle, the one that has been so for longest comes first, here and below. */
  const clients = new Map<string, Set<Connection>>()
  const idle = new Set<Connection>()
  const mayLog = throttle(QUIET)
  let counts = { ...none }

  function accept(socket: Socket): void {
    const { remoteAddress } = socket
    // It is gone already.
    if (remoteAddress === undefined) return void socket.destroy()
    const client = clientOf(remoteAddress)
    if (!hasRoom(client)) {
      report('refused')
      socket.destroy()
      return
    }
    const connection: Connection = { socket, client, isBusy: false, answered: () => requestEnded(connection) }
    open.set(socket, connection)
    if (client !== null && !clients.has(client)) clients.set(client, new Set())
    markIdle(connection)
    socket.once('close', () => forget(connection))
  }

  /** Makes room if need be. False: there is none. */
  function hasRoom(client: string | null): boolean {
    const own = client === null ? undefined : clients.get(client)
    if (own !== undefined && own.size >= share) {
      const longest = [...own].find(({ isBusy }) => !isBusy)
      if (longest === undefined) return false
      drop(longest, 'overShare')
    } else if (open.size >= all) {
      const longest = idle.values().next().value
      if (longest === undefined) return false
      drop(longest, 'overAll')
    }
    return true
  }

  function drop(connection: Connection, why: Drop): void {
    // At once, since a socket closes later.
    forget(connection)
    connection.socket.destroy()
    report(why)
  }

  function forget(connection: Connection): void {
    open.delete(connection.socket)
    idle.delete(connection)
    if (connection.client === null) return
    const own = clients.get(connection.client)
    own?.delete(connection)
    if (own?.size === 0) clients.delete(connection.client)
  }

  function requestBegan({ socket }: IncomingMessage, response: ServerResponse): void {
    // A TLS socket knows the one below it, which is what the server accepted.
    const accepted = (socket as { _parent?: Socket | null })._parent ?? (socket as Socket)
    const connection = open.get(accepted)
    // One behind it is not carried out.
    if (connection === undefined || connection.isBusy) return
    connection.isBusy = true
    idle.delete(connection)
    response.on('close', connection.answered)
  }

  function requestEnded(connection: Connection): void {
    connection.isBusy = false
    if (open.has(connection.socket)) markIdle(connection)
  }

  function markIdle(connection: Connection): void {
    idle.add(connection)
    if (connection.client === null) return
    const own = clients.get(connection.client)
    own?.delete(connection)
    own?.add(connection)
  }

  function report(why: Drop): void {
    counts[why]++
    if (!mayLog()) return
    log.warn({ ...counts, open: open.size, clients: clients.size }, 'connections were cut, for these reasons')
    counts = { ...none }
  }

  return {
    add(server: NodeServer): void {
      servers.push(server)
      server.on('connection', accept)
      server.on('request', requestBegan)
      server.on('checkContinue', requestBegan)
      server.on(CUT, () => report('unread'))
    },
    /**
     * Goes on listening for `delay` milliseconds, since load balancers need a moment to notice, and then waits for the
     * answers under way. What is left after `GRACE` is cut.
     */
    async close(delay: number): Promise<void> {
      for (const server of servers) {
        for (const event of ['request', 'checkContinue']) server.prependListener(event, closeAfterAnswer)
      }
      const deadline = setTimeout(() => {
        for (const socket of open.keys()) socket.destroy()
      }, GRACE)
      await new Promise(resolve => setTimeout(resolve, delay))
      // This closes idle connections, too.
      const closed = servers.map(server => new Promise(resolve => server.close(resolve)))
      const sweep = setInterval(() => {
        for (const server of servers) server.closeIdleConnections()
      }, SWEEP_INTERVAL)
      await Promise.all(closed)
      clearInterval(sweep)
      clearTimeout(deadline)
    },
  }
}

/** Each request from now on is the last on its connection. */
const closeAfterAnswer = (_: IncomingMessage, response: ServerResponse): void => {
  response.shouldKeepAlive = false
}

/** The event of a server one of whose connections was cut, since it held too much, or held it for too long. */
const CUT = 'cut'

/** An answer that its client has not taken, or not to its end; or the requests of a connection that came behind one. */
interface Held {
  readonly socket: Socket
  bytes: number
  /** Monotonic, in milliseconds. */
  readonly since: number
}

/** Those of the whole process, oldest first. In the clear, the kernel takes most answers at once: they are never here. */
const held = new Map<ServerResponse | Socket, Held>()
let total = 0
let sweep: NodeJS.Timeout | undefined

/**
 * Call it when an answer has been sent. Its client has `UNREAD_TIMEOUT` to take it, which no further request renews. While
 * more than `UNREAD_BYTES` are held in this process, or more than `STALLED_BYTES` with some that are older than
 * `STALLED_AFTER`, the connections of the oldest are cut.
 */
export function awaitReader(response: ServerResponse): void {
  const { socket } = response
  if (socket?.writableLength) hold(response, socket, limits.RESPONSE_BYTES + socket.writableLength)
}

/** Call it for each request that is not carried out. Node keeps it until its connection ends. */
export const holdRequest = (socket: Socket): void => hold(socket, socket, limits.REQUEST_BYTES)

function hold(what: ServerResponse | Socket, socket: Socket, bytes: number): void {
  if (socket.destroyed) return
  const known = held.get(what)
  if (known === undefined) {
    held.set(what, { socket, bytes, since: performance.now() })
    what.once('close', release)
  } else {
    known.bytes += bytes
  }
  total += bytes
  sweep ??= setInterval(cutSlowest, LOOK_INTERVAL).unref()
  if (total > limits.STALLED_BYTES) cutSlowest()
}

/** Milliseconds. */
const LOOK_INTERVAL = 1_000

function release(this: ServerResponse | Socket): void {
  total -= held.get(this)?.bytes ?? 0
  held.delete(this)
}

function cutSlowest(): void {
  const now = performance.now()
  for (const [what, { socket, since }] of held) {
    const age = now - since
    const isStalled = total > limits.STALLED_BYTES && age > limits.STALLED_AFTER
    if (!isStalled && total <= limits.UNREAD_BYTES && age <= limits.UNREAD_TIMEOUT) return
    release.call(what)
    if (!socket.destroyed) cut(socket)
  }
  clearInterval(sweep)
  sweep = undefined
}

/** Ends a connection at once, without an answer. */
function cut(socket: Socket): void {
  socket.destroy()
  // Node gives each accepted socket its server.
  ;(socket as { server?: EventEmitter }).server?.emit(CUT)
}
