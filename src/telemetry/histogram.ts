/** Observations counted in fixed buckets: plain numbers, which those who measure add to and those who report read. */
export interface Histogram {
  /** The inclusive upper bound of each bucket, ascending. */
  readonly bounds: readonly number[]
  /** How many observations each bucket has, those of the buckets below not among them; one more for what exceeds all. */
  readonly counts: number[]
  sum: number
}

export const histogram = (bounds: readonly number[]): Histogram => ({
  bounds,
  counts: new Array<number>(bounds.length + 1).fill(0),
  sum: 0,
})

export function observe(histogram: Histogram, value: number): void {
  const { bounds, counts } = histogram
  let bucket = 0
  while (bucket < bounds.length && value > bounds[bucket]!) bucket++
  counts[bucket]!++
  histogram.sum += value
}

export const countOf = ({ counts }: Histogram): number => counts.reduce((sum, count) => sum + count, 0)

/**
 * Below which value a share of all observations is, from 0 to 1; as Prometheus estimates it, within a bucket in proportion.
 * Null: there are none. Infinity: it exceeds all bounds.
 */
export function quantile(histogram: Histogram, share: number): number | null {
  const { bounds, counts } = histogram
  const all = countOf(histogram)
  if (all === 0) return null
  let below = 0
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= share * all) {
      const to = bounds[bucket]
      if (to === undefined) return Number.POSITIVE_INFINITY
      const from = bounds[bucket - 1] ?? 0
      return Math.min(to, from + ((to - from) * Math.max(0, share * all - below)) / count)
    }
    below += count
  }
  return Number.POSITIVE_INFINITY
}
