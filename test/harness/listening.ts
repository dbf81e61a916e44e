import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** Serves on a free port until the test ends, and tells under which URL. */
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
