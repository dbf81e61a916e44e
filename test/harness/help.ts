import type { TestContext } from 'node:test'
import { temporaryFolder } from './folder.ts'
import { spawnProgram } from './program.ts'

/** What the program prints with `--help`. */
export async function helpOf(t: TestContext, ...command: string[]): Promise<string> {
  const { exited, stdout } = spawnProgram(t, {}, { cwd: temporaryFolder(t), args: [...command, '--help'] })
  await exited
  return stdout()
}

/** The commands that a help text lists, without `help` itself. */
export const commandsIn = async (t: TestContext, ...command: string[]): Promise<string[]> =>
  [...((await helpOf(t, ...command)).split('\nCommands:\n')[1] ?? '').split('\n\n')[0]!.matchAll(/^ {2}([a-z]+)/gm)]
    .map(([, name]) => name!)
    .filter(name => name !== 'help')
