import type { Socket } from 'node:net'
import type { Log } from '../waitlist/ports.ts'
import { throttle } from '../waitlist/throttle.ts'
import type { NodeServer } from './listener.ts'
import type { Incoming, Outgoing } from './protocol.ts'

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
  /** Requests under way. */
  requests: number
  /** The one with the smaller number has been idle for longer. */
  idleSince: number
  /** Called at the end of a request. Made once for all requests of the connection. */
  readonly answered: () => void
}

/** Milliseconds between two lines in the log. */
const QUIET = 10_000

/**
 * Bounds the open connections of several servers together, so that no client can shut the others out. A client with more
 * than its share loses that of its connections that has been idle for longest. When all are taken, the one that has been
 * idle for longest makes room, whoever opened it. If none is idle, the new one is refused. Idle is a connection without a
 * request under way, so also one in its TLS handshake.
 *
 * The function that it returns adds a server.
 */
export function boundConnections({ all, share, clientOf, log }: ConnectionBounds): (server: NodeServer) => void {
  const open = new Map<Socket, Connection>()
  const clients = new Map<string, Set<Connection>>()
  /** The one that has been idle for longest is the first. */
  const idle = new Set<Connection>()
  let times = 0
  const mayTell = throttle(QUIET)
  let overShare = 0
  let overAll = 0
  let refused = 0

  function accept(socket: Socket): void {
    const { remoteAddress } = socket
    // It is gone already.
    if (remoteAddress === undefined) return void socket.destroy()
    const client = clientOf(remoteAddress)
    if (!hasRoom(client)) {
      refused++
      tell()
      socket.destroy()
      return
    }
    const connection: Connection = {
      socket,
      client,
      requests: 0,
      idleSince: 0,
      answered: () => end(connection),
    }
    open.set(socket, connection)
    if (client !== null) {
      const own = clients.get(client)
      if (own === undefined) clients.set(client, new Set([connection]))
      else own.add(connection)
    }
    rest(connection)
    socket.once('close', () => forget(connection))
  }

  /** Makes room if need be. False: there is none. */
  function hasRoom(client: string | null): boolean {
    const own = client === null ? undefined : clients.get(client)
    if (own !== undefined && own.size >= share) {
      const longest = longestIdle(own)
      if (longest === undefined) return false
      overShare++
      drop(longest)
    } else if (open.size >= all) {
      const longest = idle.values().next().value
      if (longest === undefined) return false
      overAll++
      drop(longest)
    }
    return true
  }

  function drop(connection: Connection): void {
    // At once, since a socket closes later.
    forget(connection)
    connection.socket.destroy()
    tell()
  }

  function forget(connection: Connection): void {
    open.delete(connection.socket)
    idle.delete(connection)
    if (connection.client === null) return
    const own = clients.get(connection.client)
    own?.delete(connection)
    if (own?.size === 0) clients.delete(connection.client)
  }

  function begin({ socket }: Incoming, response: Outgoing): void {
    // A TLS socket knows the one below it, which is what the server accepted.
    const accepted = (socket as { _parent?: Socket | null })._parent ?? (socket as Socket)
    const connection = open.get(accepted)
    if (connection === undefined) return
    if (connection.requests++ === 0) idle.delete(connection)
    response.once('close', connection.answered)
  }

  function end(connection: Connection): void {
    if (--connection.requests === 0 && open.has(connection.socket)) rest(connection)
  }

  function rest(connection: Connection): void {
    connection.idleSince = ++times
    idle.add(connection)
  }

  function tell(): void {
    if (!mayTell()) return
    const counts = { overShare, overAll, refused, open: open.size, clients: clients.size }
    log.warn(counts, 'connections were closed: a client had more than its share, or all were taken')
    overShare = 0
    overAll = 0
    refused = 0
  }

  return server => {
    server.on('connection', accept)
    server.on('request', begin)
    server.on('checkContinue', begin)
  }
}

/** Looks at each, which is a client's share at most and happens only when that is used up. */
function longestIdle(connections: ReadonlySet<Connection>): Connection | undefined {
  let longest: Connection | undefined
  for (const each of connections) {
    if (each.requests === 0 && (longest === undefined || each.idleSince < longest.idleSince)) longest = each
  }
  return longest
}
