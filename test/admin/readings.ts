import type { Reading } from '../../src/admin/reading.ts'
import { type Telemetry, telemetry } from '../../src/telemetry/telemetry.ts'
import { type Bar, type Counts, MINUTE, QUARTER } from '../../src/waitlist/alerts/counts.ts'
import { LATE } from '../../src/waitlist/alerts/watch.ts'

/** What the page may be made of: nobody, a few people, and a million with all that can go wrong. */

/** A Friday afternoon. */
export const now = new Date('2026-11-20T15:04:12Z')
export const ago = (milliseconds: number): Date => new Date(now.getTime() - milliseconds)

const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A service that has just been started, with nobody on its list. */
export const empty = {
  service: 'Acme',
  version: '0.1.0',
  startedAt: ago(70_000),
  at: now,
  isDraining: false,
  store: { takesSignups: true, triedAt: now },
  freeSpace: 40_000_000_000,
  counts: {
    at: now,
    contacts: { unconfirmed: 0, listed: 0, pending: 0, held: 0, invited: 0 },
    redeemed: 0,
    held: [],
    signups: [],
    sources: [],
    sourced: 0,
    deliveries: [],
  } as Counts,
  countsAge: 0,
  countsFailed: null,
  destinations: [],
  provider: null,
  telemetry: telemetry(),
  process: {
    ...{ startedAt: 0, cpu: 0, resident: 0, heap: 0, heapUsed: 0, external: 0, active: 0, idle: 0 },
    ...{ files: null, mostFiles: null },
  },
  eventLoop: telemetry().commits.seconds,
} satisfies Reading

/** Telemetry of these numbers, and otherwise nothing. */
export function counted(signups: Partial<Telemetry['signups']>, calls: Partial<Telemetry['calls']> = {}): Telemetry {
  const all = telemetry()
  return { ...all, signups: { ...all.signups, ...signups }, calls: { ...all.calls, ...calls } }
}

type DeliveryCount = Counts['deliveries'][number]

export const delivery = (
  destination: string,
  state: DeliveryCount['state'],
  count: number,
  more: Partial<DeliveryCount> = {},
): DeliveryCount => ({ destination, state, count, oldest: null, why: null, ...more })

/** Three people in the last hour. */
export const few: Reading = {
  ...empty,
  counts: {
    ...empty.counts,
    contacts: { unconfirmed: 0, listed: 3, pending: 0, held: 0, invited: 0 },
    held: [],
    signups: [50, 12, 0].map(minutes => ({
      from: new Date(Math.floor(ago(minutes * MINUTE).getTime() / MINUTE) * MINUTE),
      count: 1,
    })),
    deliveries: [delivery('webhook', 'delivered', 3)],
  },
  destinations: [{ name: 'webhook', outage: null, lateAfter: LATE }],
  telemetry: counted({ new: 3, known: 1, invalid: 2 }),
}

/** A month in quarters of an hour, and the last two hours in minutes. */
function month(): Bar[] {
  const since = Math.floor(ago(2 * HOUR).getTime() / QUARTER) * QUARTER
  const spans = (from: number, to: number, length: number) =>
    Array.from({ length: (to - from) / length }, (_, i) => ({
      from: new Date(from + i * length),
      count: i % 97,
    }))
  return [...spans(since - 32 * DAY, since, QUARTER), ...spans(since, now.getTime() - (now.getTime() % MINUTE), MINUTE)]
}

export const million: Reading = {
  ...empty,
  startedAt: ago(3 * DAY + 4 * HOUR),
  countsAge: 3_000,
  freeSpace: 512_000_000,
  counts: {
    at: ago(3_000),
    contacts: { unconfirmed: 0, listed: 1_233_333, pending: 1_234, held: 0, invited: 0 },
    redeemed: 0,
    held: [],
    signups: month(),
    sources: Object.entries({
      producthunt: 402_113,
      hackernews: 211_400,
      newsletter: 96_020,
      x: 40_001,
      linkedin: 12_444,
      'friend-of-a-friend': 903,
    }).map(([source, count]) => ({ source, count })),
    sourced: 771_000,
    deliveries: [
      delivery('loops', 'waiting', 1_234, {
        oldest: ago(2 * HOUR),
        why: 'create a contact: answered with 401 (bad key)',
      }),
      delivery('loops-automation', 'delivered', 1_233_333),
      delivery('webhook', 'delivered', 1_230_001),
      delivery('webhook', 'waiting', 3_320, { oldest: ago(42 * MINUTE), why: 'send an event: no answer within 15 s' }),
      delivery('webhook', 'abandoned', 12, { why: 'send an event: answered with 400 (unknown field)' }),
      delivery('discord', 'delivered', 1_233_300),
      delivery('discord', 'waiting', 33, { oldest: ago(41_000) }),
      delivery('mail', 'waiting', 7, { oldest: ago(9 * DAY) }),
    ],
  },
  destinations: [
    { name: 'loops', outage: 'misconfigured', lateAfter: LATE },
    { name: 'loops-automation', outage: null, lateAfter: LATE },
    { name: 'webhook', outage: 'unreachable', lateAfter: LATE },
    { name: 'discord', outage: null, lateAfter: LATE },
  ],
  provider: 'loops',
  telemetry: counted(
    {
      new: 402_113,
      known: 12_044,
      kept: 1_234,
      invalid: 8_801,
      refused: 31,
      limited: 4_410,
      overloaded: 120,
      failed: 2,
    },
    { created: 400_021, existing: 2_092, refused: 31, unreached: 12, misconfigured: 55 },
  ),
}

/** A service whose first count is under way. */
export const uncounted: Reading = { ...few, counts: null, countsAge: null }
