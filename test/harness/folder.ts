import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A folder of this test's own, gone when it ends. */
export function temporaryFolder(test: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'waitlist-test-'))
  test.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** In memory, where the system has files there: that commits are synced is shown elsewhere. */
export function quickFolder(t: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'waitlist-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
