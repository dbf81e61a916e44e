import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** Which of the two sends: `frontend` is the program, `backend` the server. */
export type Side = 'frontend' | 'backend'

/** A message on its way, by its name (https://postgresql.org/docs/current/protocol-message-formats.html). */
export interface Passing {
  readonly side: Side
  readonly name: string
}

/** What becomes of the connection after a message: it is cut, or nothing comes back any more. */
type Fate = 'cut' | 'silent'

/** Stands between a program and a server and knows the messages of the protocol, without TLS. */
export interface MessageProxy {
  /** The same URL, through here. */
  through(url: string): string
  /** What happens once after the `number`th message from now on, counted in both directions. */
  after(number: number, fate: Fate): void
  /** The message after which it happened; undefined: it did not, and will not. */
  end(): Passing | undefined
  /** Nothing passes on any connection that is open now, as when the machine behind them is gone. */
  strand(): void
  close(): Promise<void>
}

const names: Record<Side, Record<string, string>> = {
  frontend: { P: 'Parse', B: 'Bind', D: 'Describe', E: 'Execute', S: 'Sync', Q: 'Query' },
  backend: {
    '1': 'ParseComplete',
    '2': 'BindComplete',
    T: 'RowDescription',
    D: 'DataRow',
    C: 'CommandComplete',
    Z: 'ReadyForQuery',
    R: 'Authentication',
    S: 'ParameterStatus',
    K: 'BackendKeyData',
  },
}

export async function messageProxy(target: number): Promise<MessageProxy> {
  const sockets = new Set<Socket>()
  const links = new Set<() => void>()
  let passed = 0
  let planned: { readonly number: number; readonly fate: Fate } | undefined
  let happened: Passing | undefined

  const server = createServer({ allowHalfOpen: true }, client => {
    const backend = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
    for (const socket of [client, backend]) {
      sockets.add(socket)
      socket.setNoDelay(true).on('error', () => {})
      socket.on('close', () => sockets.delete(socket))
    }
    let over: Fate | undefined
    links.add(() => {
      over = 'silent'
    })

    const forward = (side: Side, to: Socket) => (message: Buffer, name: string) => {
      if (over !== undefined) return
      to.write(message)
      if (planned === undefined || ++passed !== planned.number) return
      over = planned.fate
      happened = { side, name }
      planned = undefined
      if (over === 'silent') return
      // What was sent arrives; nothing comes after it.
      client.end(() => client.destroy())
      backend.end()
    }
    client.on('data', messages('frontend', forward('frontend', backend)))
    backend.on('data', messages('backend', forward('backend', client)))
    client.on('end', () => backend.end())
    backend.on('end', () => (over === 'silent' ? undefined : client.end()))
    client.on('close', () => (over === 'cut' ? undefined : backend.destroy()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }

  return {
    through(url) {
      const through = new URL(url)
      through.port = String(port)
      return through.href
    },
    after(number, fate) {
      passed = 0
      happened = undefined
      planned = { number, fate }
    },
    end() {
      planned = undefined
      return happened
    },
    strand() {
      for (const link of links) link()
      links.clear()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Calls `each` with every whole message of a stream. The first one of a program has no type. */
function messages(side: Side, each: (message: Buffer, name: string) => void): (chunk: string | Buffer) => void {
  let rest = Buffer.alloc(0)
  let untyped = side === 'frontend'
  return chunk => {
    rest = Buffer.concat([rest, chunk as Buffer])
    for (;;) {
      const head = untyped ? 0 : 1
      if (rest.length < head + 4) return
      const length = head + rest.readInt32BE(head)
      if (rest.length < length) return
      const message = rest.subarray(0, length)
      const type = String.fromCharCode(message[0]!)
      const name = untyped ? 'Startup' : (names[side][type] ?? type)
      rest = rest.subarray(length)
      untyped = false
      each(message, name)
    }
  }
}
