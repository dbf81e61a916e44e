/**
 * The load generator, a process of its own. It writes bytes that were made beforehand to plain sockets and finds the end
 * of each answer by its Content-Length: much less work than the server has, so that the server is what is measured.
 * (`npm run bench -- --check` holds it against autocannon.)
 */

import { connect, type Socket } from 'node:net'
import { CLIENT, FRESH, type Job, type Measured } from './job.ts'

/** Answers are far smaller. */
const ROOM = 16 * 1024
/** Latencies are counted in steps of 10 µs, up to 2 s. */
const STEP = 0.01
const STEPS = 200_000

const END_OF_HEAD = Buffer.from('\r\n\r\n')
const LENGTH = 'Content-Length: '
const HEX = Buffer.from('0123456789abcdef')

/** Never starts again while the process lives, so no address comes twice. */
let addresses = 0
let random = (Math.random() * 2 ** 32) >>> 0

/** Sixteen characters: eight at random, so that addresses do not arrive in the order of the index, and a number. */
function writeAddress(bytes: Buffer, at: number): void {
  random ^= random << 13
  random ^= random >>> 17
  random ^= random << 5
  addresses++
  for (let i = 0; i < 8; i++) {
    bytes[at + i] = HEX[(random >>> (4 * i)) & 15]!
    bytes[at + 8 + i] = HEX[(addresses >>> (4 * i)) & 15]!
  }
}

/** A network of its own in 2001:db8::/32 (RFC 3849), so that another client is told for each request. */
function writeClient(bytes: Buffer, at: number): void {
  for (let i = 0; i < 8; i++) bytes[at + i + (i >> 2)] = HEX[(random >>> (4 * i)) & 15]!
}

function bytesOf(port: number, { method, path, body, clients }: Job['request']): Buffer {
  const head = [`${method} ${path} HTTP/1.1`, `Host: 127.0.0.1:${port}`, 'User-Agent: waitlist-bench', 'Accept: */*']
  if (clients) head.push(`X-Forwarded-For: 2001:db8:${CLIENT}::1`)
  if (body !== undefined) head.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`)
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body ?? ''}`)
}

/** The length of the whole answer at the start of `bytes`; undefined when its head is not all there. */
function answerLength(bytes: Buffer): number | undefined {
  const head = bytes.indexOf(END_OF_HEAD)
  if (head === -1) return undefined
  const text = bytes.toString('latin1', 0, head)
  let at = text.indexOf(LENGTH)
  if (at === -1) at = text.indexOf(LENGTH.toLowerCase())
  if (at === -1) throw new Error(`an answer without a Content-Length:\n${text}`)
  return head + 4 + Number.parseInt(text.slice(at + LENGTH.length), 10)
}

async function measure(job: Job): Promise<Measured> {
  const ports = [job.port, ...(job.otherPorts ?? [])]
  const steps = new Uint32Array(STEPS)
  const statuses: Record<number, number> = {}
  const ended = Promise.withResolvers<void>()
  let requests = 0
  let open = 0
  let until = 0

  function connection(_: unknown, i: number): Promise<() => void> {
    const port = ports[i % ports.length]!
    const bytes = bytesOf(port, job.request)
    const fresh = bytes.indexOf(FRESH)
    const client = bytes.indexOf(CLIENT)
    const received = Buffer.alloc(ROOM)
    let socket: Socket
    let sent = 0
    let size = 0
    let expected: number | undefined

    const send = () => {
      if (fresh !== -1) writeAddress(bytes, fresh)
      if (client !== -1) writeClient(bytes, client)
      sent = performance.now()
      socket.write(bytes)
    }
    const take = (length: number, chunk: Uint8Array): boolean => {
      if (size + length > ROOM) throw new Error('an answer is too long for this generator')
      received.set(length === chunk.length ? chunk : chunk.subarray(0, length), size)
      size += length
      expected ??= answerLength(received.subarray(0, size))
      if (expected === undefined || size < expected) return true
      const now = performance.now()
      const step = ((now - sent) / STEP) | 0
      steps[step < STEPS ? step : STEPS - 1]!++
      // "HTTP/1.1 200"
      const status = received[9]! * 100 + received[10]! * 10 + received[11]! - 48 * 111
      statuses[status] = (statuses[status] ?? 0) + 1
      requests++
      size = 0
      expected = undefined
      if (now < until) send()
      else {
        socket.end()
        if (--open === 0) ended.resolve()
      }
      return true
    }
    return new Promise((resolve, reject) => {
      const onread = { buffer: Buffer.alloc(ROOM), callback: take }
      socket = connect({ port, host: '127.0.0.1', noDelay: true, onread }, () => resolve(send))
      const lost = (why?: Error) => {
        reject(why)
        if (requests === 0 || performance.now() < until)
          ended.reject(why ?? new Error('the server closed a connection'))
      }
      socket.on('error', lost).on('end', lost)
    })
  }

  const starts = await Promise.all(Array.from({ length: job.connections }, connection))
  open = starts.length
  const before = process.cpuUsage()
  const start = performance.now()
  until = start + job.seconds * 1000
  for (const send of starts) send()
  await ended.promise
  const milliseconds = performance.now() - start
  const { user, system } = process.cpuUsage(before)
  return {
    requests,
    seconds: milliseconds / 1000,
    statuses,
    p50: percentile(steps, requests, 0.5),
    p99: percentile(steps, requests, 0.99),
    busy: (user + system) / 1000 / milliseconds,
  }
}

function percentile(steps: Uint32Array, total: number, part: number): number {
  let seen = 0
  for (let step = 0; step < STEPS; step++) {
    seen += steps[step]!
    if (seen >= total * part) return (step + 1) * STEP
  }
  return STEPS * STEP
}

process.on('message', (job: Job) => {
  measure(job).then(
    done => process.send?.({ done }),
    (error: Error) => process.send?.({ error: error.message }),
  )
})
process.on('disconnect', () => process.exit())
