import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../harness/folder.ts'

const installed = dirname(dirname(createRequire(import.meta.url).resolve('express-5/package.json')))

/** Runs examples/express/invited.mjs in a folder of its own, as its reader does, and resolves with the address of its page. */
export async function startExpress(t: Pick<TestContext, 'after'>, env: Record<string, string>): Promise<string> {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(join(installed, 'express-5'), join(folder, 'node_modules', 'express'))
  const app = join(folder, 'invited.mjs')
  copyFileSync(fileURLToPath(new URL('../../examples/express/invited.mjs', import.meta.url)), app)
  const child = spawn(process.execPath, [app], {
    env: { PATH: process.env.PATH, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return line.slice(line.indexOf('http'))
}
