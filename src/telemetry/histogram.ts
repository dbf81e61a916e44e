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
