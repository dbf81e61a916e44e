import type { ContactState, DeliveryState, HoldReason } from '../signup/contact.ts'

/** What a store counts at one moment, by its own clock. Without names and addresses. */
export interface Counts {
  readonly at: Date
  readonly contacts: Readonly<Record<ContactState, number>>
  /** Of those who are invited, how many codes the owner's app took. */
  readonly redeemed: number
  /** Those that are held, the most frequent reason first. */
  readonly held: readonly HeldCount[]
  /**
   * Contacts on the list, so without those that are held or unconfirmed, by when they signed up: minutes of the last two
   * hours, quarters of an hour of the last 32 days before. In ascending order; what is empty is left out.
   */
  readonly signups: readonly Bar[]
  /** Contacts on the list by the label of their source, the largest first, `SOURCES` at most; none without a label. */
  readonly sources: readonly { readonly source: string; readonly count: number }[]
  /** Contacts whose source has a label, also those that are not among the largest. */
  readonly sourced: number
  readonly deliveries: readonly DeliveryCount[]
}

/** Contacts that are held for one reason, and when the first and the last of them signed up. */
export interface HeldCount {
  readonly reason: HoldReason
  readonly count: number
  readonly oldest: Date
  readonly newest: Date
}

/** Deliveries to one destination in one state. */
export interface DeliveryCount {
  readonly destination: string
  readonly state: DeliveryState
  readonly count: number
  /** When the contact of the oldest one joined or was invited, or signed up if it is handed over; only of those that wait. */
  readonly oldest: Date | null
  /** How one of the attempts ended; null: none did. */
  readonly why: string | null
}

/** Sources that are counted each for itself. */
export const SOURCES = 20

/** Milliseconds. */
export const MINUTE = 60_000
export const QUARTER = 15 * MINUTE
const HOUR = 60 * MINUTE

/** What became of the list lately, as the owner of a list asks. A day begins at midnight in the time zone of the process. */
export interface Stats {
  readonly at: Date
  /** An IANA name such as `Europe/Berlin`. */
  readonly timezone: string
  /** Contacts: those that are listed, those that are pending, and those that are invited. */
  readonly total: number
  readonly listed: number
  readonly pending: number
  readonly invited: number
  /** Of those who are invited. */
  readonly redeemed: number
  /** Contacts that are held, and those that did not confirm their address yet: they are not among the others. */
  readonly held: number
  readonly unconfirmed: number
  /** Signups since midnight. */
  readonly today: number
  /** Signups of today and the six days before. */
  readonly last7Days: number
  /** Signups of today and the 29 days before. */
  readonly last30Days: number
  /** The last 60 minutes, 48 hours and 30 days, in ascending order; the last one is under way. */
  readonly perMinute: readonly Bar[]
  readonly perHour: readonly Bar[]
  readonly perDay: readonly (Bar & { readonly day: string })[]
  readonly sources: Counts['sources']
  readonly sourced: number
  readonly deliveries: Counts['deliveries']
}

/** Signups from then on, until the next one begins. */
export interface Bar {
  readonly from: Date
  readonly count: number
}

const MINUTES = 60
const HOURS = 48
const DAYS = 30

export function statsOf({ at, contacts, redeemed, signups, sources, sourced, deliveries }: Counts): Stats {
  const now = at.getTime()
  // Clocks that are a little apart: what is ahead of now is of now.
  const within = (froms: readonly number[]): Bar[] => {
    const sums = froms.map(() => 0)
    let i = 0
    for (const { from, count } of signups) {
      while (i + 1 < froms.length && froms[i + 1]! <= from.getTime()) i++
      if (froms[i]! <= from.getTime()) sums[i]! += count
    }
    return froms.map((from, i) => ({ from: new Date(from), count: sums[i]! }))
  }
  const midnight = (ago: number) => new Date(at.getFullYear(), at.getMonth(), at.getDate() - ago).getTime()
  // In Swedish, as in ISO 8601.
  const perDay = within(last(DAYS, midnight)).map(bar => ({ day: bar.from.toLocaleDateString('sv'), ...bar }))
  const ofDays = (count: number) => perDay.slice(-count).reduce((sum, day) => sum + day.count, 0)
  const minute = now - (now % MINUTE)
  const hour = new Date(at).setMinutes(0, 0, 0)
  return {
    at,
    timezone: timezone(),
    total: contacts.listed + contacts.pending + contacts.invited,
    ...contacts,
    redeemed,
    today: ofDays(1),
    last7Days: ofDays(7),
    last30Days: ofDays(30),
    perMinute: within(last(MINUTES, ago => minute - ago * MINUTE)),
    perHour: within(last(HOURS, ago => hour - ago * HOUR)),
    perDay,
    sources,
    sourced,
    deliveries,
  }
}

/** That of the process, which `TZ` names. What is none counts as UTC. */
export function timezone(): string {
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  return timeZone === undefined || timeZone === 'Etc/Unknown' ? 'UTC' : timeZone
}

/** The beginnings of as many spans, in ascending order. */
const last = (count: number, from: (ago: number) => number): number[] =>
  Array.from({ length: count }, (_, i) => from(count - 1 - i))
