import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run as command } from '../harness/command.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { runProgram } from '../harness/program.ts'
import { scene } from './scene.ts'

const server = await sharedPostgres()

const run = (t: TestContext, cwd: string, args: string[], DATABASE_URL = `sqlite:${join(cwd, 'data/waitlist.db')}`) =>
  command(t, cwd, args, { DATABASE_URL })

describe('waitlist dump and load', { concurrency: true }, () => {
  test('from SQLite beside a service to PostgreSQL, once, and back: the same bytes', async t => {
    const { cwd } = await scene(t)
    const url = await server.database()
    const first = await run(t, cwd, ['dump', 'first.jsonl'])
    assert.deepEqual([first.code, first.stdout], [0, ''])
    assert.match(first.stderr, /^first\.jsonl: contact 3, delivery 3, /)
    const loaded = await run(t, cwd, ['load', 'first.jsonl'], url)
    assert.deepEqual([loaded.code, loaded.stderr], [0, ''])
    assert.match(loaded.stdout, /^first\.jsonl is loaded: contact 3, delivery 3, /)
    assert.equal((await run(t, cwd, ['dump', 'second.jsonl'], url)).code, 0)
    const again = await run(t, cwd, ['load', 'first.jsonl'], url)
    assert.deepEqual([again.code, again.stdout], [1, ''])
    assert.match(again.stderr, /^waitlist: postgres:\/\/.* is not empty\./)

    const back = `sqlite:${join(cwd, 'back.db')}`
    assert.equal((await run(t, cwd, ['load', 'second.jsonl'], back)).code, 0)
    assert.equal((await run(t, cwd, ['dump', 'third.jsonl'], back)).code, 0)
    const [one, ...others] = ['first', 'second', 'third'].map(name => readFileSync(join(cwd, `${name}.jsonl`), 'utf8'))
    for (const each of others) assert.equal(each, one)
  })

  test('a file that exists is never overwritten, and nothing is left of a dump that fails', async t => {
    const { cwd } = await scene(t)
    writeFileSync(join(cwd, 'list.jsonl'), 'precious')
    const before = readdirSync(cwd)
    for (const [file, sentence] of [
      ['list.jsonl', /^waitlist: list\.jsonl exists already, and is never overwritten\.\n$/],
      [join(cwd, 'no/list.jsonl'), /^waitlist: no\/list\.jsonl cannot be written: /],
    ] as const) {
      const { code, stderr } = await run(t, cwd, ['dump', file])
      assert.equal(code, 1)
      assert.match(stderr, sentence)
    }
    assert.deepEqual(readdirSync(cwd), before)
    assert.equal(readFileSync(join(cwd, 'list.jsonl'), 'utf8'), 'precious')
  })

  test('what cannot be loaded is told in a sentence, and changes nothing', async t => {
    const { cwd } = await scene(t)
    await run(t, cwd, ['dump', 'whole.jsonl'])
    const whole = readFileSync(join(cwd, 'whole.jsonl'), 'utf8')
    writeFileSync(join(cwd, 'cut.jsonl'), whole.slice(0, -200))
    writeFileSync(join(cwd, 'changed.jsonl'), whole.replace('Ada Lovelace', 'Ada Lovelacy'))
    writeFileSync(join(cwd, 'other.jsonl'), '{"name":"Ada","email":"ada@example.com"}\n')
    for (const [file, sentence] of [
      ['cut.jsonl', /^waitlist: The dump cannot be loaded: .*\. Nothing was changed\.\n$/],
      ['changed.jsonl', /^waitlist: The dump cannot be loaded: its checksum is another one\. Nothing was changed\.\n$/],
      ['other.jsonl', /^waitlist: The dump cannot be loaded: it is none\. Nothing was changed\.\n$/],
      ['none.jsonl', /^waitlist: .*none\.jsonl/],
    ] as const) {
      const { code, stdout, stderr } = await run(t, cwd, ['load', file], `sqlite:${join(cwd, 'new.db')}`)
      assert.deepEqual([code, stdout], [1, ''], file)
      assert.match(stderr, sentence)
    }
    assert.equal((await run(t, cwd, ['load', 'whole.jsonl'], `sqlite:${join(cwd, 'new.db')}`)).code, 0)
  })

  test('a list that a service uses is not loaded', async t => {
    const { cwd } = await scene(t)
    await run(t, cwd, ['dump', 'list.jsonl'])
    const there = temporaryFolder(t)
    await runProgram(t, { PORT: '0', HOST: '127.0.0.1' }, { cwd: there })
    const { code, stderr } = await run(t, there, ['load', join(cwd, 'list.jsonl')])
    assert.equal(code, 1)
    assert.match(stderr, /^waitlist: \S+ is in use by another Waitlist process\./)
    assert.ok(existsSync(join(there, 'data', 'waitlist.db')))
  })
})
