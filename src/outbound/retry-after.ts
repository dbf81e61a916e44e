/** The longest wait that is told: a year, in milliseconds. */
const LONGEST = 365 * 86_400_000

/**
 * The whole milliseconds that an answer asks us to wait (RFC 9110 §10.2.3: seconds or a date), at most a year. The first
 * of `fields` with a usable value counts. `now`: milliseconds since 1970.
 */
export function retryAfter(
  answer: Readonly<Record<string, string>>,
  fields: readonly string[],
  now: number = Date.now(),
): number | undefined {
  for (const field of fields) {
    const wait = waitIn(answer[field]?.trim() ?? '', now)
    if (!Number.isNaN(wait)) return Math.ceil(Math.min(Math.max(wait, 0), LONGEST))
  }
  return undefined
}

function waitIn(text: string, now: number): number {
  if (/^\d{1,10}(?:\.\d+)?$/.test(text)) {
    const milliseconds = Number(text) * 1_000
    // Some send a time (seconds since 1970) instead of a duration.
    return Number(text) > 1_000_000_000 ? milliseconds - now : milliseconds
  }
  // Without a time of day it is not a date: Date.parse would read "-5" as a month.
  return /\d:\d\d/.test(text) ? Date.parse(text) - now : Number.NaN
}
