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
  /** The status of every answer; with any other the measurement is worthless. */
  readonly status: number
  readonly connections: number
  /** Whole seconds. */
  readonly seconds: number
}

export interface Measured {
  readonly requests: number
  readonly seconds: number
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
    const { lost, refused: above399, ...measured } = JSON.parse(stdout.trimEnd().split('\n').at(-1)!)
    // wrk only counts statuses above 399 separately.
    const refused = status < 400 ? 0 : measured.requests
    if (lost > 0 || above399 !== refused) {
      throw new Error(`${method} ${path}: not every answer was ${status}:\n${stdout}`)
    }
    return measured
  },
}

const cannon: Generator = {
  name: 'autocannon, whole milliseconds',
  async run({ port, request: { method, path, body }, status, connections, seconds }) {
    const { requests, duration, statusCodeStats, errors } = await autocannon({
      url: `http://127.0.0.1:${port}${path}`,
      method,
      connections,
      duration: seconds,
      body: body ?? '',
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      idReplacement: body?.includes(PLACE) ?? false,
      workers: 1,
    })
    if (errors > 0 || statusCodeStats?.[`${status}`]?.count !== requests.total) {
      throw new Error(
        `${method} ${path}: not every answer was ${status}: ${JSON.stringify({ errors, statusCodeStats })}`,
      )
    }
    return { requests: requests.total, seconds: duration }
  },
}

/** The generators available here, the better one first. */
export const generators: readonly Generator[] = isInstalled('wrk') ? [wrk, cannon] : [cannon]
export const generator = generators[0]!
