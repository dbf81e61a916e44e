import { setTimeout as wait } from 'node:timers/promises'
import { startPostgres } from '../../test/harness/postgres.ts'
import { underLoad } from '../../test/harness/under-load.ts'
import { networkFaults as faults } from '../network-faults.ts'
import type { Scenario } from '../scenario.ts'

const INSTANCES = 3
/** Milliseconds: longer than one statement may take. */
const LONGEST = 5_000

export const scenario: Scenario = {
  promise:
    'The links of three instances to PostgreSQL are cut at any byte, slow, mute or lose one way: every answer is true, and all of them come back.',
  least: 8,
  weight: 2,
  async run(scene) {
    const server = await startPostgres()
    scene.after(() => server.remove())
    const database = await server.database()
    const links = await Promise.all(Array.from({ length: INSTANCES }, () => scene.proxy(server.port)))
    const through = (port: number) => {
      const url = new URL(database)
      url.port = String(port)
      return url.href
    }
    const { ledger, during, assertNothingLost } = await underLoad(scene, database, {
      instances: INSTANCES,
      rest: 10,
      entry: scene.entry,
      envOf: place => ({ DATABASE_URL: through(links[place]!.port) }),
    })
    let rounds = 0
    for (; rounds === 0 || (rounds < 100 && !scene.isOver(0.7)); rounds++) {
      await during(async () => {
        for (const link of links) link.set(faults[Math.floor(scene.random() * faults.length)]!)
        await wait(scene.random() * LONGEST)
        for (const link of links) link.set({ is: 'none' })
      })
    }
    await assertNothingLost()
    return {
      figures: [
        { name: 'faults', value: rounds * INSTANCES },
        { name: 'acknowledged signups', value: ledger.acknowledged },
      ],
    }
  },
}
