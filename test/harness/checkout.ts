import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A folder that looks like a clone after `npm ci`, so that nothing is written into this one. */
export function checkout(t: Pick<TestContext, 'after'>, name = 'waitlist'): string {
  const folder = join(temporaryFolder(t), name)
  mkdirSync(folder)
  for (const each of ['package.json', 'bin', 'src', 'node_modules']) symlinkSync(join(root, each), join(folder, each))
  return folder
}
