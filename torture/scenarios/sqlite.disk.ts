import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { becomes, busy } from '../busy.ts'
import { assertKept } from '../checker.ts'
import { linux, root } from '../needs.ts'
import type { Scenario } from '../scenario.ts'
import { smallDisk } from '../small-disk.ts'

const MB = 1024 * 1024
const SIZE = 200 * MB
/** The service takes no signups when less is free. */
const FREE = 64 * MB
/** Bytes of the log that a reader keeps, before the disk gets tight. */
const LOG = 24 * MB
/** Milliseconds in which a log must reach that. */
const GROWS = 30_000

export const scenario: Scenario = {
  promise:
    'While its disk is full, it refuses and health says so, and both end within five seconds after there is room, also where a reader held the log.',
  needs: [linux, root],
  least: 18,
  weight: 4,
  async run(scene) {
    const disk = smallDisk(scene, SIZE)
    const path = join(disk.folder, 'waitlist.db')
    const url = `sqlite:${path}`
    const program = await scene.service({ DATABASE_URL: url })
    const load = busy(scene, program.baseUrl, { mayBe: [200, 500], rest: 1 })
    const told: number[] = []
    const back: number[] = []

    let cycles = 0
    for (; cycles === 0 || (cycles < 50 && !scene.isOver(0.6)); cycles++) {
      await wait(scene.random() * 500)
      disk.fill(cycles % 3 === 0 ? 0 : scene.random() * (FREE - 8 * MB))
      told.push(await becomes(program.baseUrl, 503))
      await wait(scene.random() * 500)
      disk.empty()
      back.push(await becomes(program.baseUrl, 200))
    }

    const reader = new DatabaseSync(path, { readOnly: true })
    reader.exec('begin; select * from contact limit 1')
    for (const end = performance.now() + GROWS; performance.now() < end && logOf(path) < LOG; ) await wait(50)
    const held = logOf(path)
    disk.fill(FREE - held / 2)
    told.push(await becomes(program.baseUrl, 503))
    // Nobody but the service gives back what the log takes.
    reader.close()
    const unpinned = await becomes(program.baseUrl, 200, 10_000)
    disk.empty()

    await load.stop()
    const contacts = await assertKept(scene.ledger, url)
    await program.end('SIGTERM')
    return {
      figures: [
        { name: 'times full', value: cycles },
        { name: 'acknowledged signups', value: scene.ledger.acknowledged },
        { name: 'refused signups', value: load.answers[500] ?? 0 },
        { name: 'contacts', value: contacts },
        { name: 'until health said so, at most', value: Math.max(...told), unit: 'ms', most: 5_000 },
        { name: 'until it took signups again, at most', value: Math.max(...back), unit: 'ms', most: 5_000 },
        { name: 'log that a reader held', value: held / 1e6, unit: 'MB' },
        { name: 'until it took signups after that reader', value: unpinned, unit: 'ms', most: 5_000 },
      ],
    }
  },
}

const logOf = (path: string): number => statSync(`${path}-wal`).size
