import { chmodSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { startPostgres } from '../../test/harness/postgres.ts'
import { own } from '../../test/harness/postgres-prepared.ts'
import { underLoad } from '../../test/harness/under-load.ts'
import { becomes } from '../busy.ts'
import { linux, root } from '../needs.ts'
import type { Scenario } from '../scenario.ts'
import { smallDisk } from '../small-disk.ts'

const SIZE = 256 * 1024 * 1024
/** Milliseconds for which it stays full after that was told. */
const LASTS = 3_000

export const scenario: Scenario = {
  promise:
    'While the disk of PostgreSQL is full, three instances refuse and health says so, and both end within five seconds after there is room.',
  needs: [linux, root],
  least: 12,
  weight: 2,
  async run(scene) {
    const server = await startPostgres()
    scene.after(() => server.remove())
    const disk = smallDisk(scene, SIZE)
    // The server is not root, and passes through the scene's folder.
    chmodSync(scene.folder, 0o711)
    const files = join(disk.folder, 'files')
    mkdirSync(files)
    own(files)
    const url = new URL(await server.database())
    await server.run(url.href, `create tablespace small location '${files}'`, 'create database small tablespace small')
    url.pathname = '/small'
    const { ledger, programs, during, assertNothingLost } = await underLoad(scene, url.href, {
      instances: 3,
      rest: 10,
      entry: scene.entry,
    })
    const become = (status: number) => Promise.all(programs.map(({ baseUrl }) => becomes(baseUrl, status, 15_000)))
    const told: number[] = []
    const back: number[] = []
    do {
      await during(async () => {
        await wait(scene.random() * 500)
        disk.fill(0)
        told.push(...(await become(503)))
        await wait(scene.random() * LASTS)
        disk.empty()
        back.push(...(await become(200)))
      })
    } while (!scene.isOver(0.6) && told.length < 60)
    await assertNothingLost()
    return {
      figures: [
        { name: 'times full', value: told.length / programs.length },
        { name: 'acknowledged signups', value: ledger.acknowledged },
        { name: 'until health said so, at most', value: Math.max(...told), unit: 'ms', most: 5_000 },
        { name: 'until it took signups again, at most', value: Math.max(...back), unit: 'ms', most: 5_000 },
      ],
    }
  },
}
