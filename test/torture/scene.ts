import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import * as sqlite from '../harness/database.ts'
import { seeded, seedOf } from '../harness/environment.ts'
import { quickFolder } from '../harness/folder.ts'
import { assertDelivered, Ledger, load } from '../harness/load.ts'
import { type Program, type RunOptions, runProgram, until } from '../harness/program.ts'
import type { Received } from '../harness/receiver.ts'

export type Scene = ReturnType<typeof openScene>

/** A folder for one service on SQLite, what its clients were told, and a seed. */
export function openScene(t: TestContext, folder = quickFolder(t)) {
  const settings = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000/10m', SHUTDOWN_DELAY: '0' }
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

/**
 * The file is whole, nothing acknowledged is lost or doubled, and every answer was true. With `received`, every event was
 * delivered under its one id.
 */
export function assertKept({ ledger, path }: Pick<Scene, 'ledger' | 'path'>, received?: readonly Received[]): void {
  const whole = sqlite.withDatabase(path, database => database.prepare('pragma integrity_check').get())
  assert.equal(whole?.integrity_check, 'ok')
  const contacts = sqlite.contactsIn(path)
  ledger.assertTrueOf(contacts)
  if (received !== undefined) assertDelivered(contacts, received)
}

/** Ends the leases and waits of deliveries, as time would: those of a process that was killed are attempted again. */
export const makeDue = ({ path }: Pick<Scene, 'path'>): void =>
  sqlite.withDatabase(path, database => database.exec("update delivery set due_at = 0 where state = 'waiting'"))

export const allDelivered = ({ path }: Pick<Scene, 'path'>): Promise<void> =>
  until(() =>
    sqlite.withDatabase(path, database => !database.prepare("select 1 from delivery where state = 'waiting'").get()),
  )

/** Signs up on eight connections until it is stopped. Only these statuses are right; `none`: the connection was lost. */
export function signUpContinuously(
  { t, ledger }: Pick<Scene, 't' | 'ledger'>,
  baseUrl: string,
  allowed: readonly (number | 'none')[],
): { stop(): Promise<void> } {
  let isOver = false
  const loading = load({
    ledger,
    clients: 8,
    round: 0,
    rest: 2,
    to: () => baseUrl,
    goesOn(answer) {
      assert.ok(allowed.includes(answer?.status ?? 'none'), `answered with ${answer?.status ?? 'none'}`)
      return !isOver
    },
  })
  // `stop` rejects instead.
  loading.catch(() => {})
  const stop = () => {
    isOver = true
    return loading
  }
  t.after(() => stop().catch(() => {}))
  return { stop }
}

export async function waitForHealth(baseUrl: string, status: number): Promise<void> {
  await until(async () => {
    await wait(100)
    return (await fetch(`${baseUrl}/api/health`).catch(() => null))?.status === status
  })
}
