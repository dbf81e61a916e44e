/** Nobody makes us wait for longer than a day (milliseconds). */
const LONGEST = 86_400_000

/**
 * Whole milliseconds that an answer asks us to wait (RFC 9110 §10.2.3: seconds or a date), at most a day. `fields` names
 * the fields in which the other side says it; the first that makes sense counts. `now`: milliseconds since 1970.
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
    // Some say the moment (seconds since 1970) instead of how long.
    return Number(text) > 1_000_000_000 ? milliseconds - now : milliseconds
  }
  // Without a time it is no date: Date.parse would take "-5" for a month.
  return /\d:\d\d/.test(text) ? Date.parse(text) - now : Number.NaN
}
