import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run as command } from '../harness/command.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { scene } from './scene.ts'

const server = await sharedPostgres()

const run = (t: TestContext, cwd: string, args: string[], DATABASE_URL = `sqlite:${join(cwd, 'data/waitlist.db')}`) =>
  command(t, cwd, args, { DATABASE_URL })

describe('dump and load', { concurrency: true }, () => {
  test('a file that exists is never overwritten, and nothing is left of what fails', async t => {
    const { cwd } = await scene(t)
    writeFileSync(join(cwd, 'list.jsonl'), 'precious')
    const before = readdirSync(cwd)
    for (const [args, sentence] of [
      [['dump', 'list.jsonl'], /^waitlist: list\.jsonl exists already, and is never overwritten\.\n$/],
      [['dump', join(cwd, 'no/list.jsonl')], /^waitlist: no\/list\.jsonl cannot be written: /],
    ] as const) {
      const { code, stdout, stderr } = await run(t, cwd, [...args])
      assert.deepEqual([code, stdout], [1, ''], args.join(' '))
      assert.match(stderr, sentence)
    }
    assert.deepEqual(readdirSync(cwd), before)
    assert.equal(readFileSync(join(cwd, 'list.jsonl'), 'utf8'), 'precious')
  })

  test('a dump goes from SQLite beside a service to PostgreSQL, once, and back: the same bytes', async t => {
    const { cwd } = await scene(t)
    const url = await server.database()
    const first = await run(t, cwd, ['dump', 'first.jsonl'])
    assert.deepEqual([first.code, first.stdout], [0, ''])
    assert.match(first.stderr, /^first\.jsonl: contact 3, delivery 3, /)
    const loaded = await run(t, cwd, ['load', 'first.jsonl'], url)
    assert.deepEqual([loaded.code, loaded.stderr], [0, ''])
    assert.match(loaded.stdout, /^first\.jsonl is loaded: contact 3, delivery 3, /)
    assert.match((await run(t, cwd, ['check'], url)).stdout, /^ok {6}database: postgres:\/\/.*^note {4}abandoned: 1 /ms)
    assert.equal((await run(t, cwd, ['dump', 'second.jsonl'], url)).code, 0)
    const again = await run(t, cwd, ['load', 'first.jsonl'], url)
    assert.deepEqual([again.code, again.stdout], [1, ''])
    assert.match(again.stderr, /^waitlist: postgres:\/\/.* is not empty\./)
    assert.match((await run(t, cwd, ['load', 'first.jsonl'])).stderr, /^waitlist: \S+ is in use by another Waitlist/)

    const back = `sqlite:${join(cwd, 'back.db')}`
    assert.match((await run(t, cwd, ['load', 'none.jsonl'], back)).stderr, /^waitlist: none\.jsonl cannot be read: /)
    assert.equal((await run(t, cwd, ['load', 'second.jsonl'], back)).code, 0)
    assert.equal((await run(t, cwd, ['dump', 'third.jsonl'], back)).code, 0)
    const [one, ...others] = ['first', 'second', 'third'].map(name => readFileSync(join(cwd, `${name}.jsonl`), 'utf8'))
    for (const each of others) assert.equal(each, one)
  })
})
