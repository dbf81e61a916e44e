import { tryOutside } from '../compose.ts'
import type { Config } from '../config.ts'

/** Tries what the settings name outside and says what is wrong. Resolves with whether all is well. */
export async function check(config: Config, warnings: readonly string[]): Promise<boolean> {
  let well = true
  for (const warning of warnings) process.stderr.write(`note    ${warning}\n`)
  for (const { what, is, why } of await tryOutside(config)) {
    if (is === 'wrong') well = false
    process.stdout.write(`${is.padEnd(8)}${what}: ${why}\n`)
  }
  return well
}
