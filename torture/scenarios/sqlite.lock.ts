import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { becomes, busy } from '../busy.ts'
import { assertKept } from '../checker.ts'
import type { Scenario } from '../scenario.ts'

/** Milliseconds: longer than the service waits for a lock. */
const HELD = 8_000

export const scenario: Scenario = {
  promise:
    'While somebody else holds the lock for writing, signups are refused in time and health says so; afterwards it goes on by itself.',
  least: 8,
  weight: 2,
  async run(scene) {
    const path = join(scene.folder, 'data', 'waitlist.db')
    const program = await scene.service()
    const load = busy(scene, program.baseUrl, { mayBe: [200, 500] })
    const told: number[] = []
    const back: number[] = []
    for (let cycles = 0; cycles === 0 || (cycles < 20 && !scene.isOver(0.8)); cycles++) {
      await wait(scene.random() * 500)
      const other = new DatabaseSync(path, { timeout: 5_000 })
      other.exec('begin immediate')
      told.push(await becomes(program.baseUrl, 503))
      await wait(HELD - told.at(-1)!)
      other.exec('rollback')
      other.close()
      back.push(await becomes(program.baseUrl, 200))
    }
    await load.stop()
    const contacts = await assertKept(scene.ledger, `sqlite:${path}`)
    await program.end('SIGTERM')
    return {
      figures: [
        { name: 'locks', value: told.length },
        { name: 'acknowledged signups', value: scene.ledger.acknowledged },
        { name: 'refused signups', value: load.answers[500] ?? 0 },
        { name: 'contacts', value: contacts },
        { name: 'until health said so, at most', value: Math.max(...told), unit: 'ms', most: 5_000 },
        { name: 'until it took signups again, at most', value: Math.max(...back), unit: 'ms', most: 5_000 },
      ],
    }
  },
}
