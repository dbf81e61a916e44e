import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Need } from './needs.ts'

/** Tools that npm does not have are installed here once, each in a folder named for its version. */
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'waitlist-torture')
/** Milliseconds for one command of an installation. */
const PATIENCE = 180_000

export interface Tool {
  readonly path: string
  /** Installs it where it is missing. */
  readonly need: Need
}

type Command = readonly [command: string, ...args: string[]]

/** `commands` put the program at this path of a folder of its own. */
function tool(name: string, path: string, commands: (folder: string) => readonly Command[]): Tool {
  const folder = join(cache, name)
  const program = join(folder, path)
  return {
    path: program,
    need() {
      if (existsSync(program)) return false
      mkdirSync(folder, { recursive: true })
      for (const [command, ...args] of commands(folder)) {
        const { error, status, stderr } = spawnSync(command, args, { timeout: PATIENCE, encoding: 'utf8' })
        if ((error as NodeJS.ErrnoException)?.code === 'ENOENT') return `${command} is not installed`
        if (status !== 0) return `${name} cannot be installed: ${error?.message ?? stderr.trim().split('\n').at(-1)}`
      }
      return !existsSync(program) && `${name} is not where its installation should put it`
    },
  }
}

/** Makes requests from an OpenAPI document, right and wrong ones, and holds the answers against it. */
export const schemathesis = tool('schemathesis-4.32.5', 'bin/st', folder => [
  ['python3', '-m', 'venv', folder],
  [join(folder, 'bin', 'pip'), 'install', '--quiet', '--disable-pip-version-check', 'schemathesis==4.32.5'],
])
