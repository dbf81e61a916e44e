import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { cut } from './cut.ts'
import { INPUT_BYTES, REQUEST_BYTES, WAITING_BYTES } from './limits.ts'

/** How many requests wait on each connection; the one that was answered longest ago comes first. */
const waiting = new Map<Socket, number>()
let requests = 0

/**
 * Handles a pipelined request once the earlier ones of its connection have been answered, and their answers taken (RFC
 * 9112 §9.3.2). Until then nothing more is read than the piece that was parsed with it. While all that wait in this
 * process hold more than `WAITING_BYTES`, the connection that was answered longest ago is cut.
 */
export function handleInTurn({ socket }: IncomingMessage, response: ServerResponse, handle: () => void): void {
  if (!socket.writable) return
  const others = waiting.get(socket)
  if (others === undefined) stopReading(socket)
  waiting.set(socket, (others ?? 0) + 1)
  requests++
  const drop = () => dropWaiting(socket)
  response.once('close', drop)
  response.once('socket', () => {
    response.off('close', drop)
    takeTurn(socket)
    // Others have their turns in between.
    setImmediate(() => socket.writable && handle())
  })
  while (waiting.size * INPUT_BYTES + requests * REQUEST_BYTES > WAITING_BYTES) {
    const [slowest] = waiting.keys() as Iterable<Socket> as [Socket]
    dropWaiting(slowest)
    cut(slowest, 'waiting')
  }
}

function takeTurn(socket: Socket): void {
  const count = waiting.get(socket)
  if (count === undefined) return
  if (count === 1) return dropWaiting(socket)
  requests--
  waiting.delete(socket)
  waiting.set(socket, count - 1)
}

/** No request waits on this connection any more. It is read again. */
export function dropWaiting(socket: Socket): void {
  const count = waiting.get(socket)
  if (count === undefined) return
  requests -= count
  waiting.delete(socket)
  delete (socket as Partial<Socket>).resume
  socket.resume()
}

/** Node reads on at the end of each request, and when a body is wanted. Both call the connection's `resume`. */
function stopReading(socket: Socket): void {
  socket.pause()
  socket.resume = () => socket
}
