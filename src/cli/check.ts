import type { Config } from '../config.ts'
import { tryAll } from '../trials.ts'

/** Tries everything outside that the settings name, and says what is wrong. Resolves with whether all is well. */
export async function check(config: Config, warnings: readonly string[]): Promise<boolean> {
  let well = true
  for (const warning of warnings) process.stderr.write(`note    ${warning}\n`)
  for (const { what, is, why } of await tryAll(config)) {
    if (is === 'wrong') well = false
    process.stdout.write(`${is.padEnd(8)}${what}: ${why}\n`)
  }
  return well
}
