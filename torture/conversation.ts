import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { ca } from '../test/harness/tls.ts'

/** One piece of a request. Pieces are sent as packets of their own. */
export interface Saying {
  readonly pieces: readonly Buffer[]
  /** The client shuts down its side: at once, or where there is no answer after a while, since none may come. */
  readonly halfClosed?: 'at once' | 'later'
  readonly from: string
}

/** What came of it. */
export interface Conversation {
  /** As Latin-1. */
  readonly received: string
  readonly end: 'closed' | 'reset' | 'open'
}

/** Milliseconds without a byte after which nothing more is expected, once there was an answer. */
const QUIET = 1_000
/** Milliseconds that "later" is. */
const LATER = 3_000
/** Milliseconds in which every request is answered or cut. */
const LONGEST = 20_000

/** Sends bytes over HTTP/1, alone or over TLS, and hears everything that comes back. */
export function converse(baseUrl: string, { pieces, halfClosed, from }: Saying): Promise<Conversation> {
  const { protocol, hostname, port } = new URL(baseUrl)
  const place = { host: hostname, port: Number(port), localAddress: from }
  const { promise, resolve } = Promise.withResolvers<Conversation>()
  const isTls = protocol === 'https:'
  // Over TLS the socket below is the one with an address.
  const below = connect({ ...place, allowHalfOpen: true })
  const socket = isTls ? connectTls({ socket: below, host: hostname, ca }) : below
  let received = ''
  let timer = setTimeout(() => finish('open'), LONGEST)
  const finish = (end: Conversation['end']) => {
    clearTimeout(timer)
    socket.destroy()
    below.destroy()
    resolve({ received, end })
  }
  socket.setEncoding('latin1').on('data', chunk => {
    received += chunk
    clearTimeout(timer)
    // An answer that says "close" must be followed by just that.
    timer = setTimeout(() => finish('open'), /^connection: close/im.test(received) ? LONGEST : QUIET)
  })
  socket.on('end', () => finish('closed')).on('error', () => finish('reset'))
  const say = async () => {
    for (const [i, piece] of pieces.entries()) {
      if (i > 0) await wait(20)
      socket.write(piece)
    }
    if (halfClosed === 'later') await wait(LATER)
    if (halfClosed !== undefined && received === '') socket.end()
  }
  socket.once(isTls ? 'secureConnect' : 'connect', () => void say())
  return promise
}

/** An answer of HTTP/1.1, as it came. */
export interface Answer {
  readonly status: number
  readonly head: string
  readonly content: string
}

/** Every final answer in what was received, each as long as it says; null if that is not how it is made. */
export function answersIn(received: string, isHead: boolean): readonly Answer[] | null {
  const answers: Answer[] = []
  for (let rest = received; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n') + 4
    const head = rest.slice(0, end)
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1])
    if (end === 3 || Number.isNaN(status)) return null
    rest = rest.slice(end)
    if (status < 200) continue
    const hasNone = isHead || status === 204 || status === 304
    const length = hasNone ? 0 : Number(/^content-length: (\d+)\r$/im.exec(head)?.[1])
    // Also if it is NaN.
    if (!(length <= rest.length)) return null
    answers.push({ status, head, content: rest.slice(0, length) })
    rest = rest.slice(length)
  }
  return answers
}
