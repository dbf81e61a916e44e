import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'
import { commandsIn, helpOf } from '../harness/help.ts'
import { spawnProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'

describe('waitlist --help', { timeout: 60_000, skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }, () => {
  test('each command has an example, which the command line understands', async t => {
    const cwd = temporaryFolder(t)
    const top = await commandsIn(t)
    assert.ok(top.length >= 14, top.join(' '))
    const inside = (await commandsIn(t, 'deliveries')).map(name => ['deliveries', name])
    const all = [...top.filter(name => name !== 'deliveries').map(name => [name]), ...inside]
    await Promise.all(
      all.map(async command => {
        const help = await helpOf(t, ...command)
        const lines = (help.split('\nExamples:\n')[1] ?? '')
          .split('\n')
          .filter(line => line.startsWith('  npm run -s waitlist '))
        assert.ok(lines.length > 0, command.join(' '))
        for (const line of lines) {
          const words = line.replace(/ [>|] .*/, '').match(/(?:[^\s"]|"[^"]*")+/g) ?? []
          const args = words.slice(words[4] === '--' ? 5 : 4).map(word => word.replaceAll('"', ''))
          assert.equal(args[0], command[0])
          // With wrong settings each ends after its arguments were read, and before anything is done.
          const { exited, stderr } = spawnProgram(t, { PORT: 'wrong' }, { cwd, args })
          assert.equal(await exited, 1, line)
          assert.match(stderr(), /the settings are not right/, line)
        }
      }),
    )
  })
})
