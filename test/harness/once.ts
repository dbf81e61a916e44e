import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endedWithUs } from './ended-with-us.ts'
import { sharePostgres } from './postgres.ts'

let endPostgres: () => Promise<void>

/** What `npm test` does once, before all files (`--test-global-setup`). A file that runs without it does well too. */
export async function globalSetup(): Promise<void> {
  // Each file runs in a process of its own, which would compile what all of them share again. This is the folder that
  // the program uses.
  process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), 'node-compile-cache')
  // Where the first file that needs a browser unpacks it.
  process.env.WAITLIST_TEST_CHROMIUM = endedWithUs('chromium', () => {}).folder
  endPostgres = await sharePostgres()
}

export const globalTeardown = (): Promise<void> => endPostgres()
