/**
 * The load generator: `wrk` if it is installed, otherwise autocannon in its own thread, which takes several times the
 * processor time and counts waits in whole milliseconds.
 */

import { execFile, execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import autocannon from 'autocannon'

/** In a body: replaced with a different text in each request. */
export const PLACE = '[<id>]'

export interface RequestShape {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** JSON text. */
  readonly body?: string
}

export interface Load {
  readonly port: number
  readonly request: RequestShape
  /** The status of every answer; with any other the measurement is worthless. Null: some may be refused. */
  readonly status: number | null
  readonly connections: number
  /** Whole seconds. */
  readonly seconds: number
}

export interface Measured {
  /** Answered, the refused ones included. */
  readonly requests: number
  /** Answers with a status above 399. */
  readonly refused: number
  readonly seconds: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
}

export interface Generator {
  readonly name: string
  run(load: Load): Promise<Measured>
}

function isInstalled(name: string): boolean {
  try {
    // It prints its version and exits with 1.
    execFileSync(name, ['--version'], { stdio: 'ignore' })
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
  return true
}

const script = fileURLToPath(new URL('wrk.lua', import.meta.url))

const wrk: Generator = {
  name: 'wrk, one thread',
  async run({ port, request: { method, path, body }, status, connections, seconds }) {
    const prefix = randomBytes(4).toString('hex')
    const options = [
      '--threads=1',
      `--connections=${connections}`,
      `--duration=${seconds}s`,
      '--timeout=10s',
      `--script=${script}`,
    ]
    const told = body === undefined ? [method, prefix] : [method, prefix, body]
    const url = `http://127.0.0.1:${port}${path}`
    const { stdout } = await promisify(execFile)('wrk', [...options, url, '--', ...told])
    const { lost, ...measured } = JSON.parse(stdout.trimEnd().split('\n').at(-1)!)
    // wrk only counts statuses above 399 separately.
    const refused = status === null ? measured.refused : status < 400 ? 0 : measured.requests
    if (lost > 0 || measured.refused !== refused) {
      throw new Error(`${method} ${path}: not every answer was ${status}:\n${stdout}`)
    }
    return measured
  },
}

const cannon: Generator = {
  name: 'autocannon, whole milliseconds',
  async run({ seconds, ...load }) {
    return shoot({ ...load, duration: seconds })
  },
}

interface Shots extends Omit<Load, 'seconds'> {
  readonly duration?: number
  /** Requests in all, instead of a duration. */
  readonly amount?: number
}

/** autocannon, which also does what `wrk` cannot: a fixed number of requests. */
export async function shoot({ port, request, status, ...options }: Shots): Promise<Measured> {
  const { method, path, body } = request
  const { requests, latency, duration, statusCodeStats, errors } = await autocannon({
    ...options,
    url: `http://127.0.0.1:${port}${path}`,
    method,
    body: body ?? '',
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    idReplacement: body?.includes(PLACE) ?? false,
    workers: 1,
  })
  const expected = status === null ? requests.total : statusCodeStats?.[`${status}`]?.count
  if (errors > 0 || expected !== requests.total) {
    throw new Error(`${method} ${path}: not every answer was ${status}: ${JSON.stringify({ errors, statusCodeStats })}`)
  }
  const refused = Object.entries(statusCodeStats ?? {}).reduce(
    (sum, [code, { count = 0 }]) => sum + (Number(code) > 399 ? count : 0),
    0,
  )
  return { requests: requests.total, refused, seconds: duration, p50: latency.p50, p99: latency.p99 }
}

/** The generators available here, the better one first. */
export const generators: readonly Generator[] = isInstalled('wrk') ? [wrk, cannon] : [cannon]
export const generator = generators[0]!
