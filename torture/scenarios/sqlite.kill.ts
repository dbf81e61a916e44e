import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { withDatabase } from '../../test/harness/database.ts'
import { webhookSecret } from '../../test/harness/instances.ts'
import { killUnderLoad } from '../../test/harness/kill.ts'
import { spawnProgram, until } from '../../test/harness/program.ts'
import { startReceiver } from '../../test/harness/receiver.ts'
import { assertKept } from '../checker.ts'
import type { Scenario } from '../scenario.ts'

const KILLS = 500
/** However little time there is. */
const LEAST = 3

/** Of so many kills, one comes while the program starts. */
const AT_START = 6
/** Milliseconds, more than a start takes. */
const START = 400

export const scenario: Scenario = {
  promise:
    'Killed at any moment, on SQLite, it loses and doubles nothing that it acknowledged, and each event arrives under its one id.',
  weight: 2,
  async run(scene) {
    const { ledger, random, folder } = scene
    let isLast = false
    const receiver = await startReceiver(scene, () => ({ status: isLast || random() < 0.9 ? 204 : 503 }))
    const env = { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret }
    const path = join(folder, 'data', 'waitlist.db')
    const url = `sqlite:${path}`
    const restarts: number[] = []
    let kills = 0
    for (; kills < LEAST || (kills < KILLS && !scene.isOver(0.9)); kills++) {
      if (kills % AT_START === AT_START - 1) {
        const starting = spawnProgram(scene, { ...env, PORT: '0' }, { cwd: folder, args: ['serve'] })
        await wait(random() * START)
        starting.process.kill('SIGKILL')
        await starting.exited
        continue
      }
      const start = performance.now()
      const program = await scene.service(env)
      restarts.push(performance.now() - start)
      await assertKept(ledger, url)
      await killUnderLoad(program, { ledger, round: kills, random, most: 100 })
    }
    isLast = true
    // What was under way when a process was killed is leased for a while, and what was refused waits.
    withDatabase(path, database => database.exec("update delivery set due_at = 0 where state = 'waiting'"))
    const last = await scene.service(env)
    await until(() =>
      withDatabase(path, database => !database.prepare("select 1 from delivery where state = 'waiting'").get()),
    )
    const stored = await assertKept(ledger, url, receiver.received)
    await last.end('SIGTERM')
    return {
      figures: [
        { name: 'kills', value: kills },
        { name: 'acknowledged signups', value: ledger.acknowledged },
        { name: 'contacts', value: stored },
        { name: 'events received, repetitions included', value: receiver.received.length },
        { name: 'start after a kill, the slowest', value: Math.max(...restarts), unit: 'ms', most: 5_000 },
      ],
    }
  },
}
