import { setTimeout as wait } from 'node:timers/promises'
import { startPostgres } from '../../test/harness/postgres.ts'
import { underLoad } from '../../test/harness/under-load.ts'
import type { Scenario } from '../scenario.ts'

const KILLS = 50
/** However little time there is. */
const LEAST = 2

export const scenario: Scenario = {
  promise:
    'PostgreSQL is killed below three instances: nothing acknowledged is lost or doubled, and they take signups again by themselves.',
  async run(scene) {
    const server = await startPostgres()
    scene.after(() => server.remove())
    const { ledger, during, assertNothingLost } = await underLoad(scene, await server.database(), {
      instances: 3,
      rest: 10,
      entry: scene.entry,
    })
    let kills = 0
    for (; kills < LEAST || (kills < KILLS && !scene.isOver()); kills++) {
      await during(async () => {
        await wait(scene.random() * 250)
        await server.stop('kill')
        await wait(scene.random() * 1_000)
        await server.start()
      })
    }
    await assertNothingLost()
    return {
      figures: [
        { name: 'kills', value: kills },
        { name: 'acknowledged signups', value: ledger.acknowledged },
      ],
    }
  },
}
