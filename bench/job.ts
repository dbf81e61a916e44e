/** What the runner, the generator and the bare server say to each other. */

/** One measurement: as many requests as the connections can make, one after the other on each. */
export interface Job {
  readonly port: number
  /** Connections are spread evenly over all ports. */
  readonly otherPorts?: readonly number[]
  readonly connections: number
  readonly seconds: number
  readonly request: RequestShape
}

export interface RequestShape {
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** JSON text. Where it has sixteen times `#`, each request has another address there. */
  readonly body?: string
  /** Whether each request says, as a proxy does, that it comes from another client. Only with a `FRESH` body. */
  readonly clients?: boolean
}

export const FRESH = '#'.repeat(16)
export const CLIENT = '****:****'

export const HEALTH: RequestShape = { method: 'GET', path: '/api/health' }

export interface Measured {
  readonly requests: number
  /** From the first request to the last answer. */
  readonly seconds: number
  /** How often each status came. */
  readonly statuses: Readonly<Record<number, number>>
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Part of the time in which the generator's thread was busy; near 1 it was the bottleneck. */
  readonly busy: number
}

/** An answer as the service gave it, without the fields that Node writes itself. */
export interface Answer {
  readonly status: number
  /** Name, value, name, value. */
  readonly fields: readonly string[]
  readonly body: string
  /** Seconds; Node writes it into the field Keep-Alive. */
  readonly keepAlive: number
}

/** How the bare server answers each method from now on. */
export type Answers = Readonly<Record<'GET' | 'POST', Answer>>
