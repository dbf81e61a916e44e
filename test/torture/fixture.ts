import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { seeded, seedOf } from '../harness/environment.ts'
import { quickFolder } from '../harness/folder.ts'
import { Ledger } from '../harness/load.ts'
import { type Program, type RunOptions, runProgram, until } from '../harness/program.ts'

export type Fixture = ReturnType<typeof openFixture>

/** A folder for one service on SQLite, the answers that its clients got, and a seed. */
export function openFixture(t: TestContext) {
  const folder = quickFolder(t)
  const settings = { HOST: '127.0.0.1', RATE_LIMIT: '1000000/10m', SHUTDOWN_DELAY: '0' }
  return {
    t,
    folder,
    path: `${folder}/data/waitlist.db`,
    ledger: new Ledger(),
    random: seeded(seedOf(t)),
    start: (env: Record<string, string> = {}, options: Partial<RunOptions> = {}): Promise<Program> =>
      runProgram(t, { ...settings, ...env }, { cwd: folder, ...options }),
  }
}

/** The file is whole, nothing acknowledged is lost or doubled, and every answer was true. */
export function assertKept({ ledger, path }: Pick<Fixture, 'ledger' | 'path'>): void {
  const { integrity_check } = withDatabase(path, database => database.prepare('pragma integrity_check').get())!
  assert.equal(integrity_check, 'ok')
  ledger.assertTrueOf(contactsIn(path))
}

export const waitForHealth = (baseUrl: string, status: number): Promise<void> =>
  until(async () => {
    await wait(100)
    return (await fetch(`${baseUrl}/api/health`).catch(() => null))?.status === status
  })
