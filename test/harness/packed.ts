import { execFileSync } from 'node:child_process'
import { cpSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What a clone has that is not made by a tool. */
const ours = (path: string) => !/^(?:node_modules|dist|data|\.git|\.env)(?:\/|$)/.test(path.slice(root.length))

/** A copy of this clone, in a folder of its own, without what npm installs. */
function cloned(t: Pick<TestContext, 'after'>): string {
  const folder = join(temporaryFolder(t), 'waitlist')
  cpSync(root, folder, { recursive: true, filter: ours })
  return folder
}

/** The package, built in a copy, so that nothing is written into this clone; and the files in it. */
export function packed(t: Pick<TestContext, 'after'>): { readonly tarball: string; readonly files: readonly string[] } {
  const folder = cloned(t)
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  execFileSync(process.execPath, ['scripts/build.ts'], { cwd: folder })
  const packing = ['pack', '--json', '--ignore-scripts']
  const told = execFileSync('npm', packing, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  const [{ filename, files }] = JSON.parse(told)
  return { tarball: join(folder, filename), files: files.map(({ path }: { path: string }) => path) }
}
