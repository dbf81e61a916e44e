import type { WriteStream } from 'node:tty'
import { checkAll, checkMail } from '../app/checks.ts'
import type { CheckResult } from '../app/public-address.ts'
import { plain } from '../charts/text.ts'
import type { Config } from '../config/config.ts'
import { paint, print, toJson } from './print.ts'

export interface CheckOptions {
  /** An address that a mail is sent to. */
  readonly mail?: string
  /** Whether it is an invitation. */
  readonly invitation?: true
  /** Whether it asks for a confirmation. */
  readonly confirmation?: true
  readonly json?: true
}

/**
 * Tries everything outside that the settings name, and what is stored, and says what is wrong: a line each, or as
 * `{ok, checks: [{what, is, why}]}`. Resolves with whether all is well; a note is.
 */
export async function check(
  config: Config,
  warnings: readonly string[],
  { mail, invitation, confirmation, json }: CheckOptions,
): Promise<boolean> {
  const notes = warnings.map((why): CheckResult => ({ what: 'settings', is: 'note', why }))
  const kind = confirmation ? 'asked' : invitation ? 'invited' : 'joined'
  const checks = mail === undefined ? await checkAll(config) : [await checkMail(config, mail, kind)]
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
