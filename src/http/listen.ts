import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { OperatorError } from '../config/operator.ts'

interface ListenAddress {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The names of the settings that say so. */
  readonly settings: { readonly host: string; readonly port: string }
}

/**
 * Listens on every address of the host name, with a server for each: `localhost` is both 127.0.0.1 and ::1, and browsers
 * may try either first. Each is added to `listening` as soon as it listens.
 *
 * @throws {OperatorError} when none can be listened on; then nothing is left open.
 */
export async function listen<Each extends Server>(
  listenAddress: ListenAddress,
  create: () => Each,
  listening: Each[],
): Promise<void> {
  const { host, port } = listenAddress
  try {
    const addresses = new Set((await lookup(host, { all: true })).map(({ address }) => address))
    let missing: unknown
    for (const address of addresses) {
      const server = create()
      // Port 0 is chosen with the first address and reused for the others.
      const [first] = listening
      server.listen({ host: address, port: first === undefined ? port : portOf(first) })
      await once(server, 'listening').catch(error => {
        // A host name may have an address of a family that the machine lacks.
        if (error.code !== 'EADDRNOTAVAIL' && error.code !== 'EAFNOSUPPORT') throw error
        missing = error
      })
      if (server.listening) listening.push(server)
    }
    if (listening.length === 0) throw missing
  } catch (error) {
    for (const server of listening) server.close()
    throw new OperatorError(whyNotListening(error as NodeJS.ErrnoException, listenAddress))
  }
}

function whyNotListening({ code, message }: NodeJS.ErrnoException, { host, port, settings }: ListenAddress): string {
  if (code === 'EADDRINUSE') {
    return `${settings.port} ${port} on ${host} is in use. Stop what uses it, or set another ${settings.port}.`
  }
  if (code === 'EACCES') return `${settings.port} ${port} on ${host} needs more rights than this process has.`
  return `${settings.host} ${host} with ${settings.port} ${port} cannot be listened on: ${message}`
}

export const portOf = (server: Server): number => (server.address() as AddressInfo).port

export const originOf = (host: string, port: number, secure: boolean): string =>
  `${secure ? 'https' : 'http'}://${urlHost(host)}:${port}`

/** A server on all interfaces is reached as localhost. An IPv6 address is bracketed (RFC 3986 §3.2.2). */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}
