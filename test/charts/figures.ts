import { type Stats, statsOf } from '../../src/waitlist/alerts/counts.ts'

/** What is counted in the last hours, one number each, with one source and one destination. */
export function statsIn(hours: readonly number[], source = 'hn', why = 'HTTP 503'): Stats {
  const at = new Date('2026-11-22T15:13:00Z')
  const hour = 3_600_000
  const signups = hours.map((count, i) => ({
    from: new Date(at.getTime() - 13 * 60_000 - (hours.length - 1 - i) * hour),
    length: 900_000,
    count,
  }))
  const sum = hours.reduce((sum, count) => sum + count, 0)
  const loops = { destination: 'loops', oldest: null, why: null }
  const counts = {
    at,
    contacts: { pending: 2, listed: sum, held: 0 },
    held: [],
    signups: signups.filter(({ count }) => count > 0),
    sources: [{ source, count: 7 }],
    sourced: 9,
    deliveries: [
      { ...loops, state: 'waiting', count: 2, oldest: new Date(at.getTime() - 3 * hour), why },
      { ...loops, state: 'delivered', count: 1_000 },
      { ...loops, state: 'abandoned', count: 1, why: 'HTTP 404' },
    ],
  } as const
  return statsOf(counts, 'UTC')
}
