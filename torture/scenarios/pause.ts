import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { withDatabase } from '../../test/harness/database.ts'
import { webhookSecret } from '../../test/harness/instances.ts'
import { until } from '../../test/harness/program.ts'
import { startReceiver } from '../../test/harness/receiver.ts'
import { becomes, busy } from '../busy.ts'
import { assertKept } from '../checker.ts'
import type { Scenario } from '../scenario.ts'

/** Milliseconds for which the process stands still, at most. */
const LONGEST = 6_000

export const scenario: Scenario = {
  promise:
    'The process is stopped and continued, as a machine that sleeps or is moved: every answer is true, and each event arrives under its one id.',
  async run(scene) {
    const receiver = await startReceiver(scene, () => ({ status: 204 }))
    const program = await scene.service({ WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret })
    const path = join(scene.folder, 'data', 'waitlist.db')
    const load = busy(scene, program.baseUrl, { mayBe: [200, 500, 'none'] })
    const back: number[] = []
    for (let pauses = 0; pauses === 0 || (pauses < 100 && !scene.isOver(0.7)); pauses++) {
      await wait(scene.random() * 500)
      program.process.kill('SIGSTOP')
      await wait(scene.random() ** 2 * LONGEST)
      program.process.kill('SIGCONT')
      back.push(await becomes(program.baseUrl, 200))
    }
    await load.stop()
    await until(() =>
      withDatabase(path, database => !database.prepare("select 1 from delivery where state = 'waiting'").get()),
    )
    const contacts = await assertKept(scene.ledger, `sqlite:${path}`, receiver.received)
    await program.end('SIGTERM')
    return {
      figures: [
        { name: 'pauses', value: back.length },
        { name: 'acknowledged signups', value: scene.ledger.acknowledged },
        { name: 'refused or unanswered', value: (load.answers[500] ?? 0) + (load.answers.none ?? 0) },
        { name: 'contacts', value: contacts },
        { name: 'until health said 200 again, at most', value: Math.max(...back), unit: 'ms', most: 5_000 },
      ],
    }
  },
}
