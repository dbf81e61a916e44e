import { existsSync, writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { webhookSecret } from '../../test/harness/instances.ts'
import { signUp } from '../../test/harness/load.ts'
import { startReceiver } from '../../test/harness/receiver.ts'
import { assertKept } from '../checker.ts'
import type { Need } from '../needs.ts'
import type { Scenario } from '../scenario.ts'

/** Debian's package `faketime`. */
const LIBRARY = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map(kind => `/usr/lib/${kind}/faketime/libfaketime.so.1`)
  .find(path => existsSync(path))
const faketime: Need = () => LIBRARY === undefined && 'faketime is not installed'

const YEAR = 365 * 86_400
/** Seconds that the clock is set to, from the true time: always by more than the longest wait. */
const JUMPS = [YEAR, -YEAR, 0]
const SIGNUPS = 20
/** Milliseconds: the first retry comes after 5 s, and one fifth more. */
const DELIVERED = 10_000

/** Milliseconds. */
const LONGEST = 2 * DELIVERED

/** The milliseconds until it is so. */
async function within(longest: number, otherwise: string, isSo: () => boolean): Promise<number> {
  const start = performance.now()
  while (!isSo()) {
    if (performance.now() - start > longest) throw new Error(`${otherwise} within ${longest / 1_000} s`)
    await wait(20)
  }
  return performance.now() - start
}

export const scenario: Scenario = {
  promise:
    'When the clock of the machine is set by a year, signups are stored, and each event is tried again after seconds.',
  needs: [faketime],
  least: 24,
  weight: 5,
  async run(scene) {
    const clock = join(scene.folder, 'clock')
    const set = (seconds: number) => writeFileSync(clock, `${seconds < 0 ? '' : '+'}${seconds}\n`)
    set(0)
    // The first attempt of every other one is refused, so that these wait when the clock jumps. If none were accepted, the
    // receiver would count as away, and almost none would be attempted.
    const seen = new Set<string>()
    let refused = 0
    const receiver = await startReceiver(scene, ({ headers }) => {
      const id = headers['webhook-id']!
      if (seen.has(id)) return { status: 204 }
      seen.add(id)
      if (seen.size % 2 === 1) return { status: 204 }
      refused++
      return { status: 503 }
    })
    const program = await scene.service({
      WEBHOOK_URL: receiver.url,
      WEBHOOK_SECRET: webhookSecret,
      LD_PRELOAD: LIBRARY!,
      FAKETIME_TIMESTAMP_FILE: clock,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    })
    const agent = new Agent({ keepAlive: true })
    scene.after(() => agent.destroy())
    const slowest: number[] = []
    let jumps = 0
    for (; jumps < JUMPS.length || (jumps < 200 && !scene.isOver(0.8)); jumps++) {
      for (let i = 0; i < SIGNUPS; i++) {
        const email = `jump-${jumps}-${i}@quixote.example`
        scene.ledger.note(email, await signUp(program.baseUrl, agent, email))
      }
      const all = (jumps + 1) * SIGNUPS
      const missing = `before jump ${jumps + 1} some events were not tried at all`
      await within(LONGEST, missing, () => seen.size >= all)
      set(jumps < JUMPS.length ? JUMPS[jumps]! : JUMPS[Math.floor(scene.random() * JUMPS.length)]!)
      const late = `after jump ${jumps + 1} some events were not tried again`
      slowest.push(await within(LONGEST, late, () => receiver.received.length >= all + refused))
    }
    const contacts = await assertKept(
      scene.ledger,
      `sqlite:${join(scene.folder, 'data', 'waitlist.db')}`,
      receiver.received,
    )
    await program.end('SIGTERM')
    return {
      figures: [
        { name: 'jumps of the clock', value: jumps },
        { name: 'contacts', value: contacts },
        { name: 'until all events were delivered, at most', value: Math.max(...slowest), unit: 'ms', most: DELIVERED },
      ],
    }
  },
}
