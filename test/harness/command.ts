import assert from 'node:assert/strict'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { main } from '../../src/main.ts'
import { temporaryFolder } from './folder.ts'

/** Keeps what is written. */
function sink() {
  let text = ''
  const stream = new Writable({
    decodeStrings: false,
    write(chunk, _, done) {
      text += chunk
      done()
    },
  })
  return { stream, text: () => text }
}

/**
 * Runs a command in this process, on the list in `folder` unless the settings name another. Files in its arguments are there,
 * and its output has their names alone.
 */
export async function run(
  _: unknown,
  folder: string,
  args: readonly string[],
  env: Record<string, string> = {},
  input = '',
) {
  const [stdout, stderr] = [sink(), sink()]
  const io = { stdin: Readable.from([input]), stdout: stdout.stream, stderr: stderr.stream }
  const named = args.map(each => (/^[^/]+\.(?:csv|jsonl|db|txt)$/.test(each) ? join(folder, each) : each))
  const code = await main(named, io, { DATABASE_URL: `sqlite:${join(folder, 'data/waitlist.db')}`, ...env })
  const shown = stderr.text().replaceAll(`${folder}/`, '')
  assert.doesNotMatch(shown, /\n\s+at |node:internal/, 'no stack')
  return { code, stdout: stdout.text().replaceAll(`${folder}/`, ''), stderr: shown }
}

/** The names of all commands, as the help lists them. */
export async function commandsIn(t: TestContext): Promise<string[]> {
  const { stdout } = await run(t, temporaryFolder(t), ['help'])
  return [...stdout.split('\nCommands:\n')[1]!.matchAll(/^ {2}([a-z]+)/gm)]
    .map(([, name]) => name!)
    .filter(name => name !== 'help')
}
