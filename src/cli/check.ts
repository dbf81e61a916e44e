import type { WriteStream } from 'node:tty'
import { type CheckResult, checkAll, checkMail } from '../app/checks.ts'
import type { Config } from '../config/config.ts'
import { paint, print, toJson } from './print.ts'
import { plain } from './text.ts'

export interface CheckOptions {
  /** Whether the webhook, the chats and the owner are sent a test message. */
  readonly sendTest?: true
  /** An address that a mail is sent to. */
  readonly mail?: string
  readonly letter: keyof typeof letters
  readonly json?: true
}

/** The event of which each mail tells. */
export const letters = { welcome: 'joined', invite: 'invited', confirm: 'confirmation' } as const

/**
 * Tries everything outside that the settings name, and what is stored, and says what is wrong: a line each, or as
 * `{ok, checks: [{what, is, why}]}`. Resolves with whether all is well; a note is.
 */
export async function check(
  config: Config,
  warnings: readonly string[],
  { sendTest, mail, letter, json }: CheckOptions,
): Promise<boolean> {
  const notes = warnings.map((why): CheckResult => ({ what: 'settings', is: 'note', why }))
  const checks =
    mail === undefined ? await checkAll(config, sendTest) : [await checkMail(config, mail, letters[letter])]
  const ok = checks.every(({ is }) => is !== 'wrong')
  if (json) await print([toJson({ ok, checks: [...notes, ...checks] })])
  else {
    for (const { is, why } of notes) process.stderr.write(`${column(is, process.stderr)}${why}\n`)
    await print(checks.map(({ what, is, why }) => `${column(is, process.stdout)}${what}: ${plain(why)}\n`))
  }
  return ok
}

const colours = { ok: 'green', note: 'yellow', wrong: 'red' } as const

const column = (is: CheckResult['is'], stream: WriteStream): string =>
  paint(colours[is], is, stream) + ' '.repeat(8 - is.length)
