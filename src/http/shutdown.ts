import type { Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { NodeServer } from './listener.ts'
import { closeAfter, type Incoming, isHttp2, type Outgoing } from './protocol.ts'

/** Milliseconds from the first notice until connections are cut, so that the whole stop takes less than 10 s. */
const GRACE = 7_000
/** Milliseconds. Connections become idle one after the other. */
const LOOK_EVERY = 50

/** The open connections of a server. */
export interface Connections {
  /**
   * Asks clients to leave: each request from now on is the last on its connection. New connections are still taken, since
   * load balancers need a moment to notice.
   */
  drain(): void
  /** Stops listening, waits for answers in progress, and closes what is left 7 s after `drain`. */
  close(): Promise<void>
}

export function trackConnections(server: NodeServer): Connections {
  const sockets = new Set<Socket>()
  const sessions = new Set<Http2Session>()
  const remember = <T extends Socket | Http2Session>(set: Set<T>, each: T) => {
    set.add(each)
    each.once('close', () => set.delete(each))
  }
  server.on('connection', (socket: Socket) => remember(sockets, socket))
  server.on('session', (session: Http2Session) => remember(sessions, session))

  // Sends GOAWAY: streams in progress are completed, and later ones are the client's to repeat elsewhere (RFC 9113 §6.8).
  const endSessions = () => {
    for (const session of sessions) if (!session.closed) session.close()
  }
  const leaveAfter = (request: Incoming, response: Outgoing) => {
    if (isHttp2(request)) request.stream.session?.close()
    else closeAfter(response)
  }
  let deadline: NodeJS.Timeout | undefined

  return {
    drain() {
      endSessions()
      for (const event of ['request', 'checkContinue']) server.prependListener(event, leaveAfter)
      deadline = setTimeout(() => {
        for (const session of sessions) session.destroy()
        for (const socket of sockets) socket.destroy()
      }, GRACE)
    },
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      const closeIdle = () => {
        if ('closeIdleConnections' in server) server.closeIdleConnections()
        endSessions()
      }
      closeIdle()
      const sweep = setInterval(closeIdle, LOOK_EVERY)
      await closed
      clearInterval(sweep)
      clearTimeout(deadline)
    },
  }
}
