import { tryOutside } from '../compose.ts'
import type { Config } from '../config.ts'

/** Tries what the settings name outside and says what is wrong. Resolves with whether all is well. */
export async function check(config: Config, warnings: readonly string[]): Promise<boolean> {
  let well = true
  for (const warning of warnings) process.stderr.write(`note   ${warning}\n`)
  for (const { what, result } of await tryOutside(config)) {
    const problem = typeof result === 'string' ? null : result.why
    if (problem !== null) well = false
    process.stdout.write(`${problem === null ? 'ok   ' : 'wrong'}  ${what}: ${problem ?? result}\n`)
  }
  return well
}
