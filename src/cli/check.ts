import type { Config } from '../config.ts'
import { type Trial, tryAll, tryMail } from '../trials.ts'

export interface CheckOptions {
  /** An address that a mail is sent to. */
  readonly mail?: string
  readonly json?: true
}

/**
 * Tries everything outside that the settings name, and what is stored, and says what is wrong: a line each, or as
 * `{ok, trials: [{what, is, why}]}`. Resolves with whether all is well; a note is.
 */
export async function check(
  config: Config,
  warnings: readonly string[],
  { mail, json }: CheckOptions,
): Promise<boolean> {
  const notes = warnings.map((why): Trial => ({ what: 'settings', is: 'note', why }))
  const trials = mail === undefined ? await tryAll(config) : [await tryMail(config, mail)]
  const ok = trials.every(({ is }) => is !== 'wrong')
  if (json) process.stdout.write(`${JSON.stringify({ ok, trials: [...notes, ...trials] })}\n`)
  else {
    for (const { is, why } of notes) process.stderr.write(`${is.padEnd(8)}${why}\n`)
    for (const { what, is, why } of trials) process.stdout.write(`${is.padEnd(8)}${what}: ${why}\n`)
  }
  return ok
}
