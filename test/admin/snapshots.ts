import type { Snapshot } from '../../src/admin/server.ts'
import type { Counts } from '../../src/store/counts.ts'

const MINUTE = 60_000

/** A Friday afternoon. */
export const now = new Date('2026-11-20T15:04:12Z')
export const minutesAgo = (minutes: number): Date => new Date(now.getTime() - minutes * MINUTE)

type DeliveryCount = Counts['deliveries'][number]
export const delivery = (
  destination: string,
  state: DeliveryCount['state'],
  count: number,
  more: Partial<DeliveryCount> = {},
): DeliveryCount => ({ destination, state, count, oldest: null, why: null, ...more })

export const nobody = {
  store: { takesSignups: true, freeBytes: 40_000_000_000 },
  counts: {
    at: now,
    contacts: { unconfirmed: 0, listed: 0, pending: 0, held: 0, invited: 0 },
    redeemed: 0,
    held: [],
    signups: [],
    sources: [],
    deliveries: [],
  } as Counts,
  countsError: null,
  destinations: [],
  isDraining: false,
} satisfies Snapshot

/** A million contacts, with most of what can go wrong. */
export const million: Snapshot = {
  ...nobody,
  store: { takesSignups: true, freeBytes: 512_000_000 },
  counts: {
    ...nobody.counts,
    contacts: { unconfirmed: 12, listed: 1_233_333, pending: 1_234, held: 40, invited: 1_250 },
    redeemed: 31,
    held: [{ reason: 'above-limit', count: 40 }],
    signups: Array.from({ length: 180 }, (_, i) => ({ from: minutesAgo(15 * (180 - i)), count: (i * i) % 997 })),
    deliveries: [
      delivery('loops', 'waiting', 1_234, { oldest: minutesAgo(121), why: 'create a contact: answered with 401' }),
      delivery('loops-automation', 'delivered', 1_233_333),
      delivery('webhook', 'delivered', 1_230_001),
      delivery('webhook', 'waiting', 3_320, { oldest: minutesAgo(41), why: 'send an event: no answer within 15 s' }),
      delivery('webhook', 'abandoned', 12, { why: 'send an event: answered with 400 (unknown field)' }),
      delivery('mail', 'waiting', 7, { oldest: minutesAgo(9 * 1_440) }),
    ],
  },
  destinations: [
    { name: 'loops', outage: 'misconfigured' },
    { name: 'loops-automation', outage: null },
    { name: 'webhook', outage: 'unreachable' },
    { name: 'discord', outage: null },
  ],
}
