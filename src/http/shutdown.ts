import type { Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import type { NodeServer } from './listener.ts'

/** Milliseconds for answers in progress, so that the whole stop takes less than 10 s. */
const GRACE = 6_000
/** Milliseconds. Connections become idle one after the other. */
const LOOK_EVERY = 50

/** The open connections of a server. */
export interface Connections {
  /** Stops listening, waits for answers in progress, then closes what is left. */
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

  return {
    async close() {
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      const closeIdle = () => {
        if ('closeIdleConnections' in server) server.closeIdleConnections()
        // Sends GOAWAY: streams in progress are completed, and no new one begins (RFC 9113 §6.8).
        for (const session of sessions) if (!session.closed) session.close()
      }
      closeIdle()
      const sweep = setInterval(closeIdle, LOOK_EVERY)
      const deadline = setTimeout(() => {
        for (const session of sessions) session.destroy()
        for (const socket of sockets) socket.destroy()
      }, GRACE)
      await closed
      clearInterval(sweep)
      clearTimeout(deadline)
    },
  }
}
