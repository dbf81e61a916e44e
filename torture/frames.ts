import { connect } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { ca } from '../test/harness/tls.ts'

/** RFC 9113 §6 */
export const DATA = 0
export const HEADERS = 1
export const PRIORITY = 2
export const RST_STREAM = 3
export const SETTINGS = 4
export const PING = 6
export const GOAWAY = 7
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9

export const END_STREAM = 0x1
export const ACK = 0x1
export const END_HEADERS = 0x4

/** One frame, whatever its parts say. */
export function frame(type: number, flags: number, stream: number, payload: Buffer = empty): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}
const empty = Buffer.alloc(0)

export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i)
  return bytes
}

/** Settings by their numbers (§6.5.2). */
export function settings(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.concat(pairs.map(([id, value]) => Buffer.concat([Buffer.from([0, id]), uint32(value)])))
  return frame(SETTINGS, 0, 0, payload)
}
export const INITIAL_WINDOW_SIZE = 4

/** A field as a literal that is not indexed, without Huffman coding (RFC 7541 §6.2.2). */
export function field(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), text(name), text(value)])
}

/** As a literal that enters the table (§6.2.1). */
export function indexed(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), text(name), text(value)])
}

/** §5.2, §5.1 with a prefix of seven bits. */
function text(value: string): Buffer {
  const length: number[] = []
  let rest = value.length
  if (rest < 127) length.push(rest)
  else {
    length.push(127)
    for (rest -= 127; rest >= 128; rest >>= 7) length.push((rest & 127) | 128)
    length.push(rest)
  }
  return Buffer.concat([Buffer.from(length), Buffer.from(value, 'latin1')])
}

/** What opens a request. */
export const pseudo = (method: string, path: string): Buffer =>
  Buffer.concat([field(':method', method), field(':scheme', 'https'), field(':authority', 'x'), field(':path', path)])

export const get = (stream: number, path: string): Buffer =>
  frame(HEADERS, END_STREAM | END_HEADERS, stream, pseudo('GET', path))

/** A signup whose body is still to come. */
export const post = (stream: number): Buffer =>
  frame(
    HEADERS,
    END_HEADERS,
    stream,
    Buffer.concat([pseudo('POST', '/api/waitlist'), field('content-type', 'application/json')]),
  )

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/** A connection over TLS that has sent its preface and these settings, and reads whatever comes. */
export async function openHttp2(baseUrl: string, from: string, ...first: readonly Buffer[]): Promise<TLSSocket> {
  const { hostname, port } = new URL(baseUrl)
  const below = connect({ host: hostname, port: Number(port), localAddress: from })
  const socket = connectTls({ socket: below, host: hostname, ca, ALPNProtocols: ['h2'] })
  // An attack is over when its connection is.
  socket
    .on('error', () => {})
    .on('end', () => socket.destroy())
    .on('close', () => below.destroy())
  below.on('error', () => socket.destroy())
  await either(socket, 'secureConnect', 'close')
  socket.write(Buffer.concat([preface, ...(first.length > 0 ? first : [settings()])]))
  return socket.resume()
}

/** Waits for one of these, or at most so many milliseconds. An error is an end like any other. */
export function either(socket: TLSSocket, first: string, second: string, most = 10_000): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, most)
  socket.once(first, resolve).once(second, resolve)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.off(first, resolve).off(second, resolve)
  })
}
