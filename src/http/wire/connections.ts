import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Drop, Telemetry } from '../../telemetry/telemetry.ts'
import type { Log } from '../../waitlist/ports/log.ts'
import { throttle } from '../../waitlist/quiet-log.ts'
import type { NodeServer } from './listener.ts'
import { CUT } from './unread.ts'

export interface ConnectionBounds {
  /** Connections in all. */
  readonly all: number
  /** Connections of one client. */
  readonly share: number
  /** The client behind a socket's address; null for a trusted proxy, which brings many clients and so has no share. */
  clientOf(peer: string): string | null
  readonly log: Log
  /** Null: nothing is counted. */
  readonly telemetry?: Telemetry | null
}

interface Connection {
  readonly socket: Socket
  readonly client: string | null
  /** Whether a request is under way. */
  isBusy: boolean
  /** The one with the smaller number has been idle for longer. */
  idleSince: number
  /** Called at the end of a request. Made once for all requests of the connection. */
  readonly answered: () => void
}

/** Milliseconds between two lines in the log. */
const QUIET = 10_000
/** How many connections were cut since the last line, and why. */
const none: Record<Drop, number> = { overShare: 0, overAll: 0, refused: 0, unread: 0 }

/**
 * Bounds the open connections of several servers together, so that no client can shut the others out. A client with more
 * than its share loses the connection that has been idle for longest. When all are taken, the one that has been idle for
 * longest makes room, whichever client opened it. If none is idle, the new one is refused. A connection is idle while it has
 * no request under way, even if it is still in its TLS handshake. Connections that are cut for other reasons are logged too.
 *
 * The function that it returns adds a server.
 */
export function boundConnections(bounds: ConnectionBounds): (server: NodeServer) => void {
  const { all, share, clientOf, log, telemetry = null } = bounds
  const open = new Map<Socket, Connection>()
  const clients = new Map<string, Set<Connection>>()
  /** The one that has been idle for longest is the first. */
  const idle = new Set<Connection>()
  let times = 0
  const mayTell = throttle(QUIET)
  let counts = { ...none }
  if (telemetry !== null) {
    telemetry.connections.open = () => open.size
    telemetry.connections.idle = () => idle.size
  }

  function accept(socket: Socket): void {
    const { remoteAddress } = socket
    // It is gone already.
    if (remoteAddress === undefined) return void socket.destroy()
    const client = clientOf(remoteAddress)
    if (!hasRoom(client)) {
      tell('refused')
      socket.destroy()
      return
    }
    const connection: Connection = {
      socket,
      client,
      isBusy: false,
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
    tell(why)
  }

  function forget(connection: Connection): void {
    open.delete(connection.socket)
    idle.delete(connection)
    if (connection.client === null) return
    const own = clients.get(connection.client)
    own?.delete(connection)
    if (own?.size === 0) clients.delete(connection.client)
  }

  function begin({ socket }: IncomingMessage, response: ServerResponse): void {
    // A TLS socket knows the one below it, which is what the server accepted.
    const accepted = (socket as { _parent?: Socket | null })._parent ?? (socket as Socket)
    const connection = open.get(accepted)
    // One behind it is not carried out.
    if (connection === undefined || connection.isBusy) return
    connection.isBusy = true
    idle.delete(connection)
    response.once('close', connection.answered)
  }

  function end(connection: Connection): void {
    connection.isBusy = false
    if (open.has(connection.socket)) rest(connection)
  }

  function rest(connection: Connection): void {
    connection.idleSince = ++times
    idle.add(connection)
  }

  function tell(why: Drop): void {
    counts[why]++
    if (telemetry !== null) telemetry.connections.dropped[why]++
    if (!mayTell()) return
    log.warn({ ...counts, open: open.size, clients: clients.size }, 'connections were cut, for these reasons')
    counts = { ...none }
  }

  return server => {
    server.on('connection', accept)
    server.on('request', begin)
    server.on('checkContinue', begin)
    server.on(CUT, () => tell('unread'))
  }
}

/** Looks at each, which is a client's share at most and happens only when that is used up. */
function longestIdle(connections: ReadonlySet<Connection>): Connection | undefined {
  let longest: Connection | undefined
  for (const each of connections) {
    if (!each.isBusy && (longest === undefined || each.idleSince < longest.idleSince)) longest = each
  }
  return longest
}
