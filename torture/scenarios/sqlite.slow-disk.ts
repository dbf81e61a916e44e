import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { busy } from '../busy.ts'
import { assertKept } from '../checker.ts'
import { strace } from '../needs.ts'
import type { Figure, Scenario } from '../scenario.ts'

/** Milliseconds that each sync takes longer. */
const DELAYS = [5, 50]

export const scenario: Scenario = {
  promise: 'On a disk whose syncs take 5 ms or 50 ms longer, everything is acknowledged, and all of it is kept.',
  needs: [strace],
  async run(scene) {
    const url = `sqlite:${join(scene.folder, 'data', 'waitlist.db')}`
    const figures: Figure[] = []
    for (const [round, delay] of DELAYS.entries()) {
      const inject = `inject=fsync,fdatasync:delay_exit=${delay * 1000}`
      const through = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync', '-e', inject]
      const program = await scene.service({}, { through })
      const load = busy(scene, program.baseUrl, { mayBe: [200], round, rest: 0 })
      const seconds = scene.seconds / DELAYS.length / 2
      const before = scene.ledger.acknowledged
      await wait(seconds * 1000)
      await load.stop()
      await program.end('SIGTERM')
      figures.push({ name: `signups a second, ${delay} ms`, value: (scene.ledger.acknowledged - before) / seconds })
    }
    figures.push({ name: 'contacts', value: await assertKept(scene.ledger, url) })
    return { figures }
  },
}
