import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'

export interface CountingProxy {
  readonly port: number
  /** Bytes so far, to the target and back. */
  sent(): number
  received(): number
  close(): void
}

/** Passes everything on to a port of this machine and counts it. */
export async function countingProxy(target: number): Promise<CountingProxy> {
  let sent = 0
  let received = 0
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, incoming => {
    const outgoing = connect({ port: target, host: '127.0.0.1', noDelay: true })
    incoming.on('data', chunk => {
      sent += chunk.length
    })
    outgoing.on('data', chunk => {
      received += chunk.length
    })
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => other.destroy()).on('close', () => sockets.delete(socket))
      socket.pipe(other)
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    sent: () => sent,
    received: () => received,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
