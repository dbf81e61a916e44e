/** The load generator is `wrk`, which costs a fraction of what is measured. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

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

const script = fileURLToPath(new URL('wrk.lua', import.meta.url))

/** Sends as many requests as are answered. */
export async function generate({ port, request: { method, path, body }, status, connections, seconds }: Load) {
  const prefix = randomBytes(4).toString('hex')
  const options = [
    '--threads=1',
    `--connections=${connections}`,
    `--duration=${seconds}s`,
    '--timeout=10s',
    `--script=${script}`,
  ]
  const args = body === undefined ? [method, prefix] : [method, prefix, body]
  const url = `http://127.0.0.1:${port}${path}`
  const { stdout } = await promisify(execFile)('wrk', [...options, url, '--', ...args])
  const { lost, refused, ...measured } = JSON.parse(stdout.trimEnd().split('\n').at(-1)!)
  // wrk only counts statuses above 399 separately.
  if (lost > 0 || refused !== (status < 400 ? 0 : measured.requests)) {
    throw new Error(`${method} ${path}: not every answer was ${status}:\n${stdout}`)
  }
  return measured as { requests: number; seconds: number }
}
