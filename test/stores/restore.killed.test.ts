import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { sqliteOperator } from '../../src/stores/sqlite/engine.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.place.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'

const source = new URL('../../src/stores/sqlite/engine.ts', import.meta.url)
const KILLS = 15

/** Calls one method of the operator in a process of its own, and kills it so many milliseconds after it began, or when it is so. */
async function killed(path: string, call: string, when: number | (() => boolean)): Promise<void> {
  const code = `
    import { sqliteOperator } from ${JSON.stringify(source)}
    const operator = sqliteOperator(${JSON.stringify(path)})
    process.stdout.write('go')
    await operator.${call}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  await once(child.stdout, 'data')
  if (typeof when === 'number') await wait(when)
  else await until(when)
  child.kill('SIGKILL')
  await exited
}

const many = (first: number, count: number) =>
  'insert into contact (id, name, email, email_key, state, created_at)' +
  ` with recursive n (i) as (select ${first} union all select i + 1 from n where i < ${first + count - 1})` +
  " select format('%036d', i), 'Visitor', i || '@example.com', i || '@example.com', 'listed', 0 from n"

async function list(t: TestContext) {
  const folder = temporaryFolder(t)
  const path = join(folder, 'waitlist.db')
  const open = () => sqliteStore({ path, eventName: 'waitlist.joined', destinations: ['webhook'], minimumFree: 0 })
  const store = await open()
  await store.admit(signup('Ada', 'ada@example.com'))
  await store.close()
  return { folder, path, open, operator: sqliteOperator(path) }
}

const count = (path: string) =>
  withDatabase(path, database => {
    const { integrity_check } = database.prepare('pragma integrity_check').get() as { integrity_check: string }
    assert.equal(integrity_check, 'ok')
    return Number(database.prepare('select count(*) as n from contact').get()?.n)
  })

describe('kill -9', { skip: !isSlow && 'it runs in .ci/run' }, () => {
  test('while a backup is restored: at every moment there is one whole list, and nothing of the other is lost', async t => {
    const { folder, path, open, operator } = await list(t)
    const copy = join(folder, 'copy.db')
    const [before, after] = [8_000, 4_000]
    withDatabase(path, database => database.exec(many(1, after - 1)))
    await operator.backUp(copy)
    withDatabase(path, database => database.exec(many(after, before - after)))
    const began = performance.now()
    await operator.backUp(join(folder, 'other.db'))
    const long = 3 * (performance.now() - began)
    const seen = new Set<number>()
    for (let i = 0; i < KILLS; i++) {
      await killed(path, `restore(${JSON.stringify(copy)})`, (long * i) / KILLS)
      const now = count(path)
      seen.add(now)
      assert.ok(now === before || now === after, `${now}`)
      const kept = readdirSync(folder).filter(name => /before-restore-[^.]*$/.test(name))
      if (now === after) assert.ok(kept.some(name => count(join(folder, name)) === before))
      // A service starts with it.
      await (await open()).close()
      if (now === before) continue
      // Back to the beginning.
      rmSync(path)
      await operator.restore(join(folder, kept.find(name => count(join(folder, name)) === before)!))
      for (const name of readdirSync(folder).filter(name => name.includes('before-restore'))) rmSync(join(folder, name))
    }
    t.diagnostic(seen.size === 2 ? 'killed before and after it was there' : 'killed on one side only')
    await operator.restore(copy)
    assert.equal(existsSync(`${path}.unfinished-restore`), false)
    assert.equal(count(path), after)
  })

  test('while somebody is erased: the contact is there as a whole, or its hash alone', async t => {
    const { path, open, operator } = await list(t)
    for (let i = 0; i < KILLS; i++) {
      await killed(path, "erase('ada@example.com')", i)
      const store = await open()
      const [ada] = contactsIn(path)
      const hashes = withDatabase(path, database => database.prepare('select 1 from erased').all().length)
      if (ada === undefined) assert.equal(hashes, 1)
      else assert.deepEqual([ada.events, ada.deliveries], [1, 1])
      await store.admit(signup('Ada', 'ada@example.com'))
      await store.close()
    }
    await operator.erase('ada@example.com')
    assert.deepEqual(contactsIn(path), [])
  })
})
