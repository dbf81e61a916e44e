import { PLACE, type RequestShape } from './load.ts'

export const signup = (name: string, email: string): RequestShape => ({
  method: 'POST',
  path: '/api/waitlist',
  body: JSON.stringify({ name, email }),
})

export const health: RequestShape = { method: 'GET', path: '/api/health' }
export const newSignup = signup('Ada Lovelace', `${PLACE}@example.com`)
export const knownSignup = signup('Ada Lovelace', 'ada@example.com')
const refusedSignup = signup('Ada Lovelace', 'ada@example')

export interface Goals {
  /** The lowest rate, as a fraction of the baseline's. */
  readonly rate: number
  /** The most processor time for a request, as a multiple of the baseline's. */
  readonly time?: number
}

/** Requests that are sent to a service and to the bare server alike. */
export interface Scenario {
  /** As on the command line; several scenarios may share it. */
  readonly group: string
  readonly name: string
  readonly request: RequestShape
  readonly status: number
  readonly connections: number
  readonly goals: Goals
  /** The service: on SQLite, the same with its quota used up, or on PostgreSQL. */
  readonly service: 'open' | 'shut' | 'postgres'
}

const base = { request: newSignup, status: 200, connections: 64, service: 'open' } as const

export const scenarios: readonly Scenario[] = [
  { ...base, group: 'health', name: 'health', request: health, goals: { rate: 0.92, time: 1.1 } },
  { ...base, group: 'signup', name: 'new signup', goals: { rate: 0.62, time: 2 } },
  {
    ...base,
    group: 'signup',
    name: 'new signup, 256 connections',
    connections: 256,
    goals: { rate: 0.75, time: 1.7 },
  },
  { ...base, group: 'known', name: 'known address', request: knownSignup, goals: { rate: 0.88, time: 1.25 } },
  {
    ...base,
    group: 'refused',
    name: 'refused body',
    request: refusedSignup,
    status: 400,
    goals: { rate: 0.92, time: 1.12 },
  },
  {
    ...base,
    group: 'limited',
    name: 'too many attempts',
    request: knownSignup,
    status: 429,
    service: 'shut',
    goals: { rate: 0.92, time: 1.12 },
  },
  {
    ...base,
    group: 'postgres',
    name: 'PostgreSQL, new signup',
    service: 'postgres',
    goals: { rate: 0.45 },
  },
  {
    ...base,
    group: 'postgres',
    name: 'PostgreSQL, new signup, 256 connections',
    connections: 256,
    service: 'postgres',
    goals: { rate: 0.55 },
  },
]

/** A new signup with many contacts in the file, against one with few. */
export const fileSizeGoals: Goals = { rate: 0.75 }

/** A new signup on SQLite, against one on PostgreSQL with as many contacts. */
export const engineGoals = { rate: 1.15, p99: 1.2 } as const

/** A signup with one of the switches against bots, against one without: it must not halve what can be taken. */
export const switchGoals: Goals = { rate: 0.5, time: 2 }

/** The same with a solution to verify, beside which a known address is cheap. */
export const challengeGoals: Goals = { rate: 0.25, time: 5 }

/** The p99 of a new signup, as a multiple of the bare server's. */
export const waitGoal = 3

/** Milliseconds, for 99 of 100 signups while thousands of connections are busy. */
export const crowdGoal = 1_500

/** Milliseconds. */
export const startGoal = 150

/** Millions of bytes. */
export const memoryGoals = { atRest: 85, peak: 180 }

/** Milliseconds, for 99 of 100 health reports while a provider hangs. */
export const hangGoal = 50

/** Seconds, millions of bytes, and the p99 of signups beside a command as a multiple of the usual. */
export const commandGoals = {
  release: 60,
  discard: 60,
  invite: 60,
  list: 2,
  stats: 1,
  export: 15,
  import: 60,
  memory: 200,
  p99: 3,
}

/** The most attempts that can be set, refilled as quickly as can be set: nobody is refused. */
export const openLimiter = { RATE_LIMIT: '1000000/1s' }
export const shutLimiter = { RATE_LIMIT: '1/1d' }
