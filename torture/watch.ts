import { descriptorsOf, memoryOf } from '../bench/resources.ts'

/** Milliseconds between two samples. */
const PACE = 250

/** One look at a process. */
export interface Sample {
  /** Resident memory in millions of bytes. */
  readonly memory: number
  /** Open files and sockets. */
  readonly descriptors: number
}

/** What a process uses. NaN outside Linux. */
export interface Watch {
  readonly samples: readonly Sample[]
  /** The most so far, by the kernel's own count: what comes and goes between two samples as well. */
  peakMemory(): number
  peakDescriptors(): number
  stop(): void
}

export function watch(pid: number): Watch {
  const samples: Sample[] = []
  let peak = 0
  const look = () => {
    try {
      const { now, peak: most } = memoryOf(pid)
      // It has ended, and was not waited for yet.
      if (Number.isNaN(most) && process.platform === 'linux') return stop()
      peak = Math.max(peak, most / 1e6)
      samples.push({
        memory: now / 1e6,
        descriptors: descriptorsOf(pid),
      })
    } catch {
      // It has ended.
      stop()
    }
  }
  const timer = setInterval(look, PACE)
  const stop = () => clearInterval(timer)
  look()
  return {
    samples,
    peakMemory() {
      look()
      return peak
    },
    peakDescriptors: () => Math.max(...samples.map(({ descriptors }) => descriptors)),
    stop,
  }
}
