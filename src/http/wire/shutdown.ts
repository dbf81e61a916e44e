import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { NodeServer } from './listener.ts'

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
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  let deadline: NodeJS.Timeout | undefined

  return {
    drain() {
      for (const event of ['request', 'checkContinue']) {
        server.prependListener(event, (_, response: ServerResponse) => {
          response.shouldKeepAlive = false
        })
      }
      deadline = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
      }, GRACE)
    },
    async close() {
      // Closes idle connections, too.
      const closed = new Promise<void>(resolve => server.close(() => resolve()))
      const sweep = setInterval(() => server.closeIdleConnections(), LOOK_EVERY)
      await closed
      clearInterval(sweep)
      clearTimeout(deadline)
    },
  }
}
