import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import type { TestContext } from 'node:test'

const LOWEST = 10_000
/** Below the range from which systems take the ports of outgoing connections: Linux from 32,768, others from 49,152. */
const HIGHEST = 30_000

/**
 * A port that nobody listens on. Drawn, so that tests which run at the same time hardly ever get the same one, and where
 * no outgoing connection takes it before its server does.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false
    throw error
  }
  await once(server.close(), 'close')
  return true
}

/** Serves on a free port until the test ends, and returns the URL. */
export async function listening(test: Pick<TestContext, 'after'>, server: Server): Promise<string> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
