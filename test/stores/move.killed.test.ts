import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { MoveOptions } from '../../src/stores/move.ts'
import type { StorePlace } from '../../src/stores/place.ts'
import { postgresRecords } from '../../src/stores/postgres/records.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteRecords } from '../../src/stores/sqlite/records.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { CannotOpen } from '../../src/waitlist/ports.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres } from '../harness/postgres.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { listIn, listOn, manyContacts, moved, postgres, sqlite, writeList } from './move.scene.ts'

const server = await startPostgres()
after(() => server.remove())

const source = new URL('../../src/stores/move.ts', import.meta.url)

/** A move in a process of its own, which says `go` at its first batch. */
function childMove(t: TestContext, from: StorePlace, to: StorePlace, batch: number, flags: readonly string[] = []) {
  const code =
    `import { move } from ${JSON.stringify(source)}\n` +
    `const options = { batch: ${batch}, signal: new AbortController().signal }\n` +
    `const progress = ({ phase }) => phase === 'copying' && process.stdout.write('go ')\n` +
    `const { is } = await move(${JSON.stringify(from)}, ${JSON.stringify(to)}, { ...options, progress })\n` +
    'process.stdout.write(is)'
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

describe('a move that is killed', { timeout: 180_000 }, () => {
  for (const way of ['to PostgreSQL', 'to a file'] as const) {
    test(`goes on ${way}, wherever it was`, async t => {
      const folder = temporaryFolder(t)
      const path = join(folder, 'waitlist.db')
      writeList(path, manyContacts(3_000))
      const url = await server.database()
      if (way === 'to a file') assert.equal((await moved(sqlite(path), postgres(url))).is, 'moved')
      const copy = join(folder, 'copy.db')
      const [from, to] = way === 'to a file' ? [postgres(url), sqlite(copy)] : [sqlite(path), postgres(url)]

      let cut = 0
      for (let run = 1; run <= 6; run++) {
        const child = childMove(t, from, to, 50)
        await Promise.race([child.begun, child.closed])
        const pause = Math.random() * 80 * run
        await wait(pause)
        await child.kill()
        if (!child.said().endsWith('moved')) cut++
        t.diagnostic(
          `run ${run} was killed ${Math.round(pause)} ms after its first batch: ${child.said().length} signs`,
        )
      }
      const result = await moved(from, to)
      assert.equal(result.is, 'moved')
      assert.deepEqual(way === 'to a file' ? listIn(copy) : await listOn(url), listIn(path))
      assert.ok(cut > 0, 'no run was killed before its end')
    })
  }
})

/** What a service does, and what the other commands do. */
async function use(place: StorePlace): Promise<void> {
  const eventName = 'waitlist.joined'
  const records = place.kind === 'sqlite' ? sqliteRecords(place.path) : postgresRecords(place.url)
  const looked = await records.look().catch(error => error)
  const read = await records.contacts().catch(error => error)
  const opening =
    place.kind === 'sqlite'
      ? sqliteStore({ path: place.path, eventName, minimumFree: 0 })
      : postgresStore({ url: place.url, eventName, log: recordingLog().log })
  const store = await opening.catch(error => {
    assert.deepEqual([String(looked), String(read)], [String(error), String(error)], 'all refuse alike')
    throw error
  })
  await Array.fromAsync(read as AsyncIterable<unknown>)
  await store.close()
}

const notEnded = (error: unknown) => {
  assert.ok(error instanceof CannotOpen, String(error))
  assert.match(error.message, /^A move into .* has not ended\. Run the same `waitlist move` again, or begin with an/)
  return true
}

/** A move that is ended when it has copied all, while it compares. */
async function stoppedInTheEnd(from: StorePlace, to: StorePlace): Promise<void> {
  const leaving = new AbortController()
  const progress: MoveOptions['progress'] = ({ phase }) => phase === 'verifying' && leaving.abort()
  assert.equal((await moved(from, to, { signal: leaving.signal, progress })).is, 'stopped')
}

describe('a target that is half moved', { concurrency: true, timeout: 120_000 }, () => {
  for (const way of ['PostgreSQL', 'a file'] as const) {
    test(`is of no use to a service, nor as a source, until the move has ended: ${way}`, async t => {
      const folder = temporaryFolder(t)
      const [path, copy, next] = ['waitlist.db', 'copy.db', 'next.db'].map(name => join(folder, name)) as [
        string,
        string,
        string,
      ]
      writeList(path, manyContacts(3_000))
      const to = way === 'a file' ? sqlite(copy) : postgres(await server.database())
      const contacts = async () => (to.kind === 'sqlite' ? listIn(to.path) : await listOn(to.url)).contact.length

      // It says so before each batch.
      const child = childMove(t, sqlite(path), to, 20)
      await until(() => child.said().length > 'go go go '.length)
      await child.kill()
      const there = await contacts()
      assert.ok(there > 0 && !child.said().endsWith('moved'), `${there} contacts`)
      await assert.rejects(use(to), notEnded)
      await assert.rejects(moved(to, sqlite(next)), /A move into .* has not ended/)

      // Every other end leaves the mark as it is.
      await stoppedInTheEnd(sqlite(path), to)
      assert.equal(await contacts(), 3_000)
      await assert.rejects(use(to), notEnded)

      const last = await moved(sqlite(path), to)
      assert.ok(last.is === 'moved' && last.copied === 0)
      await use(to)
      // Nothing is left to copy, so it is not marked anew.
      await stoppedInTheEnd(sqlite(path), to)
      await use(to)
      assert.equal((await moved(to, sqlite(next))).is, 'moved')
    })
  }
})

test('a move holds a batch in memory, not the list', { timeout: 120_000 }, async t => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  writeList(path, manyContacts(50_000))
  const child = childMove(t, sqlite(path), postgres(await server.database()), 2_000, ['--max-old-space-size=24'])
  const [code] = await child.closed
  assert.equal(code, 0)
  assert.ok(child.said().endsWith('moved'))
})
