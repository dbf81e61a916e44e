import type { Fate, Process, ProcessParts } from './process.ts'
import { startProcess } from './process.ts'
import { type Time, turn } from './time.ts'

/** What a process is about, and its end; of a process that died it never comes. */
export interface Work {
  readonly by: Process
  readonly done: Promise<void>
}

/** All processes over one store: mostly one; more when some slept for a while. */
export interface Processes {
  /** Those that are alive and awake. Visitors meet the last. */
  running(): readonly Process[]
  /** What happens to the next process that comes to this moment; null: nothing more. */
  destine(fate: Fate | null): void
  isDestined(): boolean
  /** Lets time pass until this work is over, or whoever does it is dead or asleep. Somebody is running afterwards. */
  through(...work: readonly Work[]): Promise<void>
  pass(milliseconds: number): Promise<void>
  /** Ends all but those that sleep, and starts one. */
  restart(): void
  /** Ends all, those that sleep as well, and starts one when this is done. */
  replace(change: () => Promise<void>): Promise<void>
  /** Wakes every process that sleeps, after this time. They go on where they were. */
  wake(after: number): Work[]
}

/** Turns that one command may take; it takes some dozens. */
const PATIENCE = 2_000

/**
 * What a store has yet to answer. Of all histories: the processes of an earlier one may still be at work, and time must
 * not go on while the store is, or it would seem hung.
 */
const asked = new Set<Promise<unknown>>()

export function startProcesses(time: Time, parts: Omit<ProcessParts, 'time' | 'track' | 'fate'>): Processes {
  let destined: Fate | null = null
  let asleep: Work[] = []

  const start = () =>
    startProcess({
      ...parts,
      time,
      track(answer) {
        asked.add(answer)
        const over = () => void asked.delete(answer)
        answer.then(over, over)
        return answer
      },
      fate(at) {
        if (destined?.at !== at) return undefined
        const { what } = destined
        destined = null
        return what
      },
    })

  /** The store owes no answer, and nothing more happens before time goes on. */
  async function quiet(): Promise<void> {
    do {
      await Promise.allSettled(asked)
      await turn()
    } while (asked.size > 0)
  }

  async function finish(work: readonly Work[]): Promise<void> {
    const left = new Set(work)
    for (const each of work) void each.done.then(() => left.delete(each))
    for (let turns = 0; turns < PATIENCE; turns++) {
      await quiet()
      if (left.size > 0 && time.next()) continue
      for (const each of left) {
        if (each.by.state() === 'alive') throw new Error('something waits for what never comes')
        if (each.by.state() !== 'asleep') continue
        asleep.push(each)
      }
      return
    }
    throw new Error('something does not come to an end')
  }

  let running = [start()]
  return {
    running: () => running,
    destine(fate) {
      destined = fate
    },
    isDestined: () => destined !== null,
    async through(...work) {
      await finish(work)
      running = running.filter(process => process.state() === 'alive')
      if (running.length === 0) running = [start()]
    },
    pass: milliseconds => time.pass(milliseconds, quiet),
    restart() {
      // What one keeps, to be stored later, ends with it.
      for (const process of running) process.end()
      running = [start()]
    },
    async replace(change) {
      for (const process of [...running, ...asleep.map(({ by }) => by)]) process.end()
      asleep = []
      running = []
      await quiet()
      await change()
      running = [start()]
    },
    wake(after) {
      const work = asleep
      asleep = []
      const woken = [...new Set(work.map(({ by }) => by))]
      running = [...woken, ...running]
      for (const process of woken) void time.pause(after).then(process.wake)
      return work
    },
  }
}
