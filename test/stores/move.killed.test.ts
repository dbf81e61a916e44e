import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { StoreLocation } from '../../src/stores/location.ts'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-database.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { type List, listIn, listOn, manyContacts, moved, postgres, sqlite, writeList } from './move.scene.ts'

const skip = !isSlow && 'it runs in .ci/run'
const server = isSlow ? await sharedPostgres() : null

const source = new URL('../../src/stores/operator/move.ts', import.meta.url)
const scene = new URL('./move.scene.ts', import.meta.url)

/** `method` of the target ends the process at its `call`th call, `before` or `after` it does its work. */
interface Death {
  readonly method: 'begin' | 'write' | 'finish' | 'read' | 'commit'
  readonly call: number
  readonly when: 'before' | 'after'
}

/** A move in a process of its own, which says `go` at its first batch, and in the end what became of it. */
function childMove(
  t: TestContext,
  from: StoreLocation,
  to: StoreLocation,
  { batch = 50, flags = [], death }: { batch?: number; flags?: readonly string[]; death?: Death } = {},
) {
  const code = `
    import { moveRows, openSource, openTarget } from ${JSON.stringify(source)}
    import { movable } from ${JSON.stringify(scene)}
    const death = ${JSON.stringify(death)}
    const source = await openSource(movable(${JSON.stringify(from)}))
    const target = await openTarget(movable(${JSON.stringify(to)}))
    const die = () => process.kill(process.pid, 'SIGKILL')
    let calls = 0
    const dying = death && {
      [death.method]: async (...all) => {
        calls++
        if (calls === death.call && death.when === 'before') die()
        const result = await target[death.method](...all)
        if (calls === death.call && death.when === 'after') die()
        return result
      },
    }
    const { is } = await moveRows(source, { ...target, ...dying }, {
      batch: ${batch},
      signal: new AbortController().signal,
      progress: ({ phase }) => phase === 'copying' && process.stdout.write('go '),
    })
    await target.close()
    await source.close()
    process.stdout.write(is)`
  const child = spawn(process.execPath, [...flags, '--input-type=module', '--eval', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    said += text
  })
  const closed = once(child, 'close')
  t.after(() => child.kill('SIGKILL'))
  return {
    begun: once(child.stdout, 'data'),
    said: () => said,
    closed,
    async kill() {
      child.kill('SIGKILL')
      await closed
    },
  }
}

interface Target {
  readonly to: StoreLocation
  /** All that can be told of it. */
  state(): Promise<unknown>
  list(): Promise<List>
}

const targets: Readonly<Record<string, (t: TestContext) => Promise<Target>>> = {
  async 'PostgreSQL with empty tables'() {
    const url = await server!.database()
    await (await postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })).close()
    const state = () =>
      rowsIn(
        url,
        'select last_value, is_called, (select count(*) from contact) as contacts,' +
          ' (select count(*) from delivery) as deliveries from contact_number_seq',
      )
    return { to: postgres(url), state, list: () => listOn(url) }
  },
  async 'no file'(t) {
    const path = join(temporaryFolder(t), 'copy.db')
    return { to: sqlite(path), state: async () => existsSync(path), list: async () => listIn(path) }
  },
}

const beforeCommit: Death = { method: 'commit', call: 1, when: 'before' }
const deaths: readonly Death[] = [
  { method: 'begin', call: 1, when: 'after' },
  { method: 'write', call: 1, when: 'after' },
  { method: 'write', call: 13, when: 'after' },
  { method: 'finish', call: 1, when: 'before' },
  { method: 'finish', call: 1, when: 'after' },
  { method: 'read', call: 8, when: 'after' },
  beforeCommit,
]

describe('a move that is killed leaves the target as it was, and the next one succeeds', {
  timeout: 180_000,
  skip,
}, () => {
  for (const [name, make] of Object.entries(targets)) {
    test(name, async t => {
      const path = join(temporaryFolder(t), 'waitlist.db')
      writeList(path, manyContacts(500))
      const { to, state, list } = await make(t)
      const before = await state()
      for (const death of deaths) {
        const child = childMove(t, sqlite(path), to, { death })
        assert.deepEqual(await child.closed, [null, 'SIGKILL'], JSON.stringify(death))
        assert.deepEqual(await state(), before, JSON.stringify(death))
      }
      assert.equal((await moved(sqlite(path), to)).is, 'moved')
      assert.deepEqual(await list(), listIn(path))
    })
  }

  test('and what it left beside a file is gone then', async t => {
    const folder = temporaryFolder(t)
    const [path, copy] = [join(folder, 'waitlist.db'), join(folder, 'copy.db')]
    writeList(path, manyContacts(500))
    await childMove(t, sqlite(path), sqlite(copy), { death: beforeCommit }).closed
    assert.ok(existsSync(`${copy}.unfinished-move`), 'it has a name that says what it is')
    assert.equal((await moved(sqlite(path), sqlite(copy))).is, 'moved')
    assert.deepEqual(
      readdirSync(folder).filter(name => name.startsWith('copy')),
      ['copy.db', 'copy.db-lock'],
    )
  })

  test('all is there when it is killed after the last step', async t => {
    const path = join(temporaryFolder(t), 'waitlist.db')
    writeList(path, manyContacts(500))
    for (const [name, make] of Object.entries(targets)) {
      const { to, list } = await make(t)
      await childMove(t, sqlite(path), to, { death: { method: 'commit', call: 1, when: 'after' } }).closed
      assert.deepEqual(await list(), listIn(path), name)
    }
  })
})

test('a move holds a batch in memory, not the list', {
  timeout: 120_000,
  skip,
}, async t => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  writeList(path, manyContacts(50_000))
  const child = childMove(t, sqlite(path), postgres(await server!.database()), {
    batch: 2_000,
    flags: ['--max-old-space-size=32'],
  })
  const [code] = await child.closed
  assert.equal(code, 0)
  assert.ok(child.said().endsWith('moved'))
})
