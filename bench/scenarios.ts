import { FRESH, HEALTH, type RequestShape } from './job.ts'

const signup = (name: string, email: string): RequestShape => ({
  method: 'POST',
  path: '/api/waitlist',
  body: JSON.stringify({ name, email }),
})

export const newSignup = signup('Ada Lovelace', `${FRESH}@example.com`)
export const knownSignup = signup('Ada Lovelace', 'ada@example.com')

/** What is asked of the service and of the bare server alike. */
export interface Scenario {
  readonly name: string
  readonly request: RequestShape
  /** Every answer has this status, or the measurement does not count. */
  readonly status: number
  /** The least ratio of the service's rate to the bare server's. */
  readonly goal: number
  /** Whether the service that lets every attempt through is asked, or the one that lets one through. */
  readonly limiter: 'open' | 'shut'
}

export const scenarios: readonly Scenario[] = [
  { name: 'health', request: HEALTH, status: 200, goal: 0.9, limiter: 'open' },
  { name: 'new signup', request: newSignup, status: 200, goal: 0.65, limiter: 'open' },
  { name: 'known address', request: knownSignup, status: 200, goal: 0.65, limiter: 'open' },
  { name: 'refused body', request: signup('Ada Lovelace', 'ada@example'), status: 400, goal: 0.8, limiter: 'open' },
  { name: 'too many attempts', request: knownSignup, status: 429, goal: 0.8, limiter: 'shut' },
]

/** A new signup with many contacts in the file, against one with few. */
export const largeGoal = 0.85

export const memoryGoals = { idle: 90, after: 200 }
export const startUpGoal = 200

/** Signups at once while the provider hangs, and the milliseconds within which 99 of 100 health reports come then. */
export const crowd = 1_000
export const healthGoal = 50

/** The most attempts that can be set, refilled as quickly as can be set: nobody is refused. */
export const openLimiter = { RATE_LIMIT: '1000000', RATE_LIMIT_WINDOW: '1' }
export const shutLimiter = { RATE_LIMIT: '1', RATE_LIMIT_WINDOW: '86400' }

/** New signups on PostgreSQL: against the bare server, and against the same program with one insert for each. */
export const instanceGoals = { bare: 0.5, oneInsert: 3 }
