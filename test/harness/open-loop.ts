import { connect, type Socket } from 'node:net'
import { performance } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'

/** A load that arrives by schedule, however slow the answers are: as visitors do, who know nothing of each other. */
export interface OpenLoop {
  /** `http://<address>:<port>` */
  readonly baseUrl: string
  /** Kept open, with one request at a time on each. A request that finds none free waits, and the wait counts. */
  readonly connections: number
  /** Loopback addresses that the connections come from in turn: 127.0.0.1, 127.0.0.2, … */
  readonly addresses?: number
  /** One after the other, on the same connections. */
  readonly stages: readonly Stage[]
  /** The bytes of a request; by default a signup with a new address. */
  request?(number: number): string
}

export interface Stage {
  /** Requests a second, evenly spaced. */
  readonly rate: number
  readonly seconds: number
}

/** What became of the requests that were due in one stage. Times are in milliseconds. */
export interface Outcome {
  readonly due: number
  /** From when each request was due to the end of its answer, by status. */
  readonly answers: Readonly<Record<number, Latency>>
  /** Cut before their answers, or without any when the run ended. */
  readonly lost: number
  /** How late this generator was in writing, waits for a free connection included: large where it is itself the bottleneck. */
  readonly lag: Latency
}

export interface Latency {
  readonly count: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

/** Milliseconds for the last answers after the last stage. */
const PATIENCE = 60_000
/** Milliseconds between two tries to connect. */
const RECONNECT = 100
/** Connections that are opened at once, fewer than any backlog. */
const OPENING = 100

/** Milliseconds, by the status of the answers, and the generator's own. */
type Noted = Record<number | 'lag', number[]>

interface Connection {
  readonly from: string
  socket: Socket | undefined
  /** When the request under way was due. */
  due: number
  /** Where its latency is noted; null: none is under way. */
  stage: Noted | null
  received: string
}

/** Runs the stages and returns an outcome for each. Call it from another process than the server's. */
export async function openLoop(load: OpenLoop): Promise<readonly Outcome[]> {
  const { baseUrl, connections: count, addresses = 1, stages, request = signups(baseUrl) } = load
  const { hostname: host, port } = new URL(baseUrl)
  const place = { host, port: Number(port) }
  const free: Connection[] = []
  const all: Connection[] = []
  const noted = stages.map((): Noted => ({ lag: [] }))
  let underWay = 0
  let over = false

  const open = (connection: Connection): Promise<void> =>
    new Promise(resolve => {
      const socket = connect({ ...place, localAddress: connection.from, noDelay: true })
      connection.socket = socket
      socket.once('connect', () => {
        free.push(connection)
        resolve()
      })
      socket.setEncoding('latin1').on('data', chunk => take(connection, chunk as unknown as string))
      socket.on('error', () => {})
      socket.once('close', async () => {
        resolve()
        if (connection.stage !== null) underWay--
        connection.stage = null
        connection.received = ''
        const at = free.indexOf(connection)
        if (at !== -1) free.splice(at, 1)
        await wait(RECONNECT)
        if (!over) await open(connection)
      })
    })

  const take = (connection: Connection, chunk: string): void => {
    const received = connection.received + chunk
    connection.received = received
    const head = received.indexOf('\r\n\r\n')
    if (head === -1) return
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(received)?.[1] ?? 0)
    if (received.length < head + 4 + length) return
    connection.received = ''
    const { stage } = connection
    if (stage === null) return
    const status = Number(received.slice(9, 12))
    stage[status] ??= []
    stage[status].push(performance.now() - connection.due)
    connection.stage = null
    underWay--
    if (/\r\nconnection: *close/i.test(received.slice(0, head))) connection.socket!.destroy()
    else free.push(connection)
  }

  for (let i = 0; i < count; i++) {
    const from = addressOf(i % addresses)
    all.push({ from, socket: undefined, due: 0, stage: null, received: '' })
  }
  for (let i = 0; i < count; i += OPENING) await Promise.all(all.slice(i, i + OPENING).map(open))

  const plan = scheduleOf(stages)
  const began = performance.now()
  let next = 0
  while (next < plan.total || underWay > 0) {
    const now = performance.now()
    if (now > began + plan.end + PATIENCE) break
    while (next < plan.total && free.length > 0) {
      const { at, stage } = plan.arrival(next)
      const due = began + at
      if (due > now) break
      const connection = free.shift()!
      connection.due = due
      connection.stage = noted[stage]!
      noted[stage]!.lag.push(performance.now() - due)
      underWay++
      connection.socket!.write(request(next++), 'latin1')
    }
    await wait(1)
  }
  over = true
  for (const { socket } of all) socket?.destroy()

  return stages.map(({ rate, seconds }, i): Outcome => {
    const { lag, ...byStatus } = noted[i]!
    const answers = Object.fromEntries(Object.entries(byStatus).map(([status, each]) => [status, latency(each)]))
    const answered = Object.values(answers).reduce((sum, { count }) => sum + count, 0)
    const due = Math.floor(rate * seconds)
    return { due, answers, lost: due - answered, lag: latency(lag) }
  })
}

/** When each request is due, in milliseconds from the start, and in which stage. */
function scheduleOf(stages: readonly Stage[]) {
  const starts: { at: number; first: number }[] = []
  let at = 0
  let first = 0
  for (const { rate, seconds } of stages) {
    starts.push({ at, first })
    at += seconds * 1_000
    first += Math.floor(rate * seconds)
  }
  let stage = 0
  return {
    total: first,
    end: at,
    /** Asked in order. */
    arrival(number: number) {
      while (stage + 1 < stages.length && number >= starts[stage + 1]!.first) stage++
      const { at, first } = starts[stage]!
      return { stage, at: at + ((number - first) * 1_000) / stages[stage]!.rate }
    },
  }
}

function signups(baseUrl: string): (number: number) => string {
  const { host } = new URL(baseUrl)
  const head = `POST /api/waitlist HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: `
  // Different in each run, as addresses are.
  const run = Math.random().toString(36).slice(2, 8)
  return number => {
    const body = `{"name":"Zebulon Quixote","email":"z.${run}.${number}@quixote.example"}`
    return `${head}${body.length}\r\n\r\n${body}`
  }
}

function addressOf(number: number): string {
  const last = number + 1
  return `127.${last >> 16}.${(last >> 8) & 255}.${last & 255}`
}

function latency(times: number[]): Latency {
  const sorted = Float64Array.from(times).sort()
  const quantile = (q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0
  return { count: sorted.length, p50: quantile(0.5), p99: quantile(0.99), max: quantile(1) }
}
