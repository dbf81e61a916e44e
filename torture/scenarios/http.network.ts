import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { becomes, busy } from '../busy.ts'
import { assertKept } from '../checker.ts'
import { networkFaults as faults } from '../network-faults.ts'
import type { Scenario } from '../scenario.ts'

/** Milliseconds, fewer than a client waits for its answer. */
const LASTS = 2_000

export const scenario: Scenario = {
  promise:
    'The network to the clients cuts at any byte, is slow, stands still or loses one way: what was acknowledged is kept, once.',
  async run(scene) {
    const program = await scene.service()
    const proxy = await scene.proxy(Number(new URL(program.baseUrl).port))
    const watch = scene.watch(program.process.pid!)
    const load = busy(scene, `http://127.0.0.1:${proxy.port}`, { mayBe: [200, 400, 'none'], rest: 1 })
    let count = 0
    for (; count < faults.length || (count < 500 && !scene.isOver(0.9)); count++) {
      proxy.set(faults[count < faults.length ? count : Math.floor(scene.random() * faults.length)]!)
      await wait(scene.random() * LASTS)
      proxy.set({ is: 'none' })
      // What was lost is never answered.
      proxy.cut()
    }
    await load.stop()
    await becomes(program.baseUrl, 200)
    const contacts = await assertKept(scene.ledger, `sqlite:${join(scene.folder, 'data', 'waitlist.db')}`)
    await program.end('SIGTERM')
    return {
      figures: [
        { name: 'faults', value: count },
        { name: 'acknowledged signups', value: scene.ledger.acknowledged },
        { name: 'connections lost', value: load.answers.none ?? 0 },
        { name: 'contacts', value: contacts },
        { name: 'memory, at most', value: watch.peakMemory(), unit: 'MB' },
      ],
    }
  },
}
