import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { temporaryFolder } from '../harness/folder.ts'
import { runCommand as run } from '../harness/program.ts'
import { scene } from './contacts.scene.ts'

describe('waitlist list', { concurrency: true, timeout: 60_000 }, () => {
  test('shows those who were added last first, in columns that line up, and nothing that controls a terminal', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['list'])
    assert.deepEqual([code, stderr], [0, ''])
    const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ'
    const [heading, cyd, bob, ada, ...more] = stdout.split('\n')
    assert.deepEqual(more, [''])
    assert.equal(heading, 'signed up             state    name          address          source')
    assert.equal(cyd, '1970-01-01T00:00:00Z  listed   Cyd evil      cyd@example.com  news')
    assert.match(bob!, new RegExp(`^${time}  pending  Bob 李        bob@example\\.com$`))
    assert.match(ada!, new RegExp(`^${time}  listed   Ada Lovelace  Ada@Example\\.com$`))
  })

  test('json has one object a line, as the JSON export has it, and nothing else', async t => {
    const { cwd } = await scene(t)
    const { code, stdout } = await run(t, cwd, ['list', '--json', '--limit', '2'])
    assert.equal(code, 0)
    const exported = await run(t, cwd, ['export', '--format', 'json'])
    assert.deepEqual(stdout.trimEnd().split('\n'), exported.stdout.trimEnd().split('\n').toReversed().slice(0, 2))
  })

  test('the filters say which; what is left out is told', async t => {
    const { cwd } = await scene(t)
    const found = async (...args: string[]) => {
      const { code, stdout } = await run(t, cwd, ['list', ...args])
      assert.equal(code, 0)
      return [...stdout.matchAll(/(\S+)@/g)].map(([, who]) => who)
    }
    assert.deepEqual(await found('--search', 'B'), ['bob'])
    assert.deepEqual(await found('--since', '1h', '--state', 'listed'), ['Ada'])
    assert.deepEqual(await found('--until', '1970-01-02', '--source', 'news'), ['cyd'])
    assert.match(
      (await run(t, cwd, ['list', '-l', '2'])).stdout,
      /\nThere are more than these 2, which were added last; --limit shows them\.\n$/,
    )
  })

  test('nobody found is exit code 1, with a sentence', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['list', '--search', 'nobody', '--json'])
    assert.deepEqual([code, stdout, stderr], [1, '', 'waitlist: There are no such contacts.\n'])
    await refused(t, 1, /There is no database at/)
  })

  test('options that cannot be understood are refused', async t => {
    await refused(t, 2, /at most 10,000; npm run -s waitlist export writes/, '--limit', '10001')
    await refused(t, 2, /must be 1 to 255 characters/, '--search', '')
  })

  async function refused(t: TestContext, expected: number, sentence: RegExp, ...args: string[]): Promise<void> {
    const { code, stdout, stderr } = await run(t, temporaryFolder(t), ['list', ...args])
    assert.deepEqual([code, stdout], [expected, ''])
    assert.match(stderr, sentence)
  }
})
