import { setTimeout as wait } from 'node:timers/promises'
import { startPostgres } from '../../test/harness/postgres.ts'
import { underLoad } from '../../test/harness/under-load.ts'
import type { Scenario } from '../scenario.ts'

const KILLS = 100
/** However little time there is. */
const LEAST = 2
const INSTANCES = 3

export const scenario: Scenario = {
  promise:
    'Of three instances over PostgreSQL one is killed, again and again: nothing acknowledged is lost or doubled, and the others go on.',
  async run(scene) {
    const server = await startPostgres()
    scene.after(() => server.remove())
    const { ledger, replace, during, assertNothingLost } = await underLoad(scene, await server.database(), {
      instances: INSTANCES,
      rest: 10,
      entry: scene.entry,
    })
    let kills = 0
    for (; kills < LEAST || (kills < KILLS && !scene.isOver()); kills++) {
      await during(async () => {
        await wait(scene.random() * 250)
        await replace(Math.floor(scene.random() * INSTANCES))
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
