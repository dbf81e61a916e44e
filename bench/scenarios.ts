import { PLACE, type RequestShape } from './load.ts'

const signup = (email: string): RequestShape => ({
  method: 'POST',
  path: '/api/waitlist',
  body: JSON.stringify({ name: 'Ada Lovelace', email }),
})
export const newSignup = signup(`${PLACE}@example.com`)
export const knownSignup = signup('ada@example.com')

export interface Scenario {
  readonly name: string
  readonly request: RequestShape
  readonly status: number
  readonly connections: number
  /** With its quota used up, or on PostgreSQL. */
  readonly service?: 'limited' | 'postgres'
}

export const scenarios: readonly Scenario[] = [
  { name: 'health', request: { method: 'GET', path: '/api/health' }, status: 200, connections: 64 },
  { name: 'new-64', request: newSignup, status: 200, connections: 64 },
  { name: 'new-256', request: newSignup, status: 200, connections: 256 },
  { name: 'known', request: knownSignup, status: 200, connections: 64 },
  { name: 'limited', request: knownSignup, status: 429, connections: 64, service: 'limited' },
  { name: 'postgres', request: newSignup, status: 200, connections: 64, service: 'postgres' },
]

/** Read by `against` from the bench of the other checkout, whose settings may have other names. */
export const openLimiter = { RATE_LIMIT: '1000000/1s' }
export const shutLimiter = { RATE_LIMIT: '1/1d' }
