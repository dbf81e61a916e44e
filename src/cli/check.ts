import type { Config } from '../config.ts'
import { tryAll, tryMail } from '../trials.ts'

export interface CheckOptions {
  /** An address that a mail is sent to. */
  readonly mail?: string
}

/** Tries everything outside that the settings name, and says what is wrong. Resolves with whether all is well. */
export async function check(config: Config, warnings: readonly string[], { mail }: CheckOptions): Promise<boolean> {
  let well = true
  for (const warning of warnings) process.stderr.write(`note    ${warning}\n`)
  const trials = mail === undefined ? await tryAll(config) : [await tryMail(config, mail)]
  for (const { what, is, why } of trials) {
    if (is === 'wrong') well = false
    process.stdout.write(`${is.padEnd(8)}${what}: ${why}\n`)
  }
  return well
}
