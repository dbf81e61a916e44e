import type { Fault } from '../test/harness/fault-proxy.ts'

/** What a network does to those who rely on it. */
export const networkFaults: readonly Fault[] = [
  { is: 'reset', most: 4_000 },
  { is: 'reset', most: 400 },
  { is: 'slice', most: 5 },
  { is: 'delay', most: 150 },
  { is: 'slow', bytesPerSecond: 20_000 },
  { is: 'pause' },
  { is: 'black hole', loses: 'requests' },
  { is: 'black hole', loses: 'answers' },
  { is: 'black hole', loses: 'both' },
]
