import { type Outcome, openLoop, type Stage } from '../../test/harness/open-loop.ts'
import { slowDisk } from '../build.ts'
import { contactsAt } from '../checker.ts'
import { signupPeak } from '../peak.ts'
import type { Scenario } from '../scenario.ts'
import { listIn } from '../under-attack.ts'

/** How many times more arrives than can be served. */
const TIMES = 3
/** Kept open, 100 from each address. */
const CONNECTIONS = 9_000
const ADDRESSES = 90
/** Seconds for which the recovery is looked at. */
const RECOVERY = 8
/** Milliseconds; where half the load is served as quickly as this, all is normal again. */
const NORMAL = 300
/** Milliseconds that somebody may wait and be accepted; 500 are wanted. */
const LATE = 2_000
/** Millions of bytes, all in all: wanted, and at most. So many connections take 150 by themselves. */
const MEMORY = 250
const MOST_MEMORY = 500

export const scenario: Scenario = {
  promise: `When ${TIMES} times more arrives than it can serve, it serves what it can, quickly, refuses the rest at once, and is normal again within 5 s.`,
  least: 18,
  weight: 4,
  async run(scene) {
    // Else three times more would be more than one process can send.
    const program = await scene.service({}, { entry: scene.changed(...slowDisk) })
    const { baseUrl, process: child } = program
    const peak = await signupPeak(baseUrl)

    const before = (await contactsAt(listIn(scene.folder))).length

    const watch = scene.watch(child.pid!)
    const seconds = Math.max(4, Math.round(scene.seconds * 0.4))
    const half: Stage = { rate: peak / 2, seconds: 1 }
    const stages = [half, half, { rate: peak * TIMES, seconds }, ...Array.from({ length: RECOVERY }, () => half)]
    const outcomes = await openLoop({ baseUrl, connections: CONNECTIONS, addresses: ADDRESSES, stages })
    const over = outcomes[2]!
    const recovered = outcomes.slice(3).findIndex(isNormal) + 1

    const isAlive = child.exitCode === null && child.signalCode === null
    const memory = watch.peakMemory()
    if (isAlive) await program.end('SIGTERM')
    // Each address was sent once, so what was acknowledged can be counted.
    const added = (await contactsAt(listIn(scene.folder))).length - before
    const acknowledged = outcomes.reduce((sum, { answers }) => sum + (answers[200]?.count ?? 0), 0)

    const { 200: accepted, 500: refused } = over.answers
    // Until the last of them was answered, or what waits in a queue would count as served.
    const served = (accepted?.count ?? 0) / (seconds + (accepted?.max ?? 0) / 1000)
    const lost = outcomes.reduce((sum, { lost }) => sum + lost, 0)
    return {
      figures: [
        { name: 'signups a second that can be served', value: peak },
        { name: 'offered a second', value: peak * TIMES },
        { name: 'served a second', value: served },
        { name: 'of the peak', value: (served / peak) * 100, unit: '%', least: 90 },
        { name: 'wait of those accepted, p99', value: accepted?.p99 ?? Number.NaN, unit: 'ms', most: 500 },
        { name: 'refused a second', value: (refused?.count ?? 0) / seconds },
        ...(refused ? [{ name: 'wait of those refused, p99', value: refused.p99, unit: 'ms', most: 50 }] : []),
        { name: 'neither', value: lost },
        { name: 'lag of the generator, p99', value: over.lag.p99, unit: 'ms' },
        { name: 'memory', value: memory, unit: 'MB', most: MEMORY },
        { name: 'normal again after', value: recovered === 0 ? Number.NaN : recovered, unit: 's', most: 5 },
        { name: 'acknowledged', value: acknowledged },
        { name: 'stored', value: added },
      ],
      broken: [
        ...(isAlive ? [] : ['the process ended']),
        ...(acknowledged > added ? [`${acknowledged} were acknowledged, ${added} are stored`] : []),
        ...(memory > MOST_MEMORY ? [`it takes ${Math.round(memory)} MB, more than ${MOST_MEMORY}`] : []),
        ...((accepted?.p99 ?? 0) > LATE
          ? [`those accepted waited ${Math.round(accepted!.p99)} ms, more than ${LATE}`]
          : []),
        ...(recovered === 0 || recovered > 5 ? ['it is not normal again within 5 s'] : []),
      ],
    }
  },
}

const isNormal = ({ due, answers, lost }: Outcome): boolean =>
  lost === 0 && answers[200]?.count === due && answers[200].p99 <= NORMAL
