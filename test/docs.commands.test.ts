import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sqliteStore } from '../src/stores/sqlite/store.ts'
import { signup } from './contracts/store.place.ts'
import { checkout } from './harness/checkout.ts'
import { commandsIn } from './harness/help.ts'
import { isSlow } from './harness/slow.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const page = (name: string) => readFileSync(join(root, 'docs', name), 'utf8')
const lines = (text: string) =>
  [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(([, block]) => block!.trim().split('\n'))

describe('the pages on the command line', { timeout: 120_000, skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }, () => {
  for (const name of ['commands.md', 'privacy.md']) {
    test(`every command of docs/${name} works as it stands there`, async t => {
      const cwd = checkout(t)
      const path = join(cwd, 'data', 'waitlist.db')
      const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
      await store.admit(signup('Ada Lovelace', 'ada@example.com'))
      await store.close()
      assert.ok(lines(page(name)).length > 2)
      for (const line of lines(page(name))) {
        // Nobody is there to be asked.
        const typed = line.replace(/\bremove\b/, 'remove --yes')
        const { stdout } = await promisify(execFile)('sh', ['-c', typed], { cwd, env: { PATH: process.env.PATH } })
        assert.doesNotMatch(stdout, /needs you/, line)
      }
    })
  }

  test('docs/commands.md names every command', async t => {
    const [table] = page('commands.md').split('\n## ')
    for (const command of await commandsIn(t)) {
      if (command !== 'serve') assert.match(table!, new RegExp(`^\\|[^|]*\`${command}\``, 'm'), command)
    }
  })
})
