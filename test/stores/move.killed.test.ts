import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { StorePlace } from '../../src/stores/place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres } from '../harness/postgres.ts'
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

test('a move holds a batch in memory, not the list', { timeout: 120_000 }, async t => {
  const path = join(temporaryFolder(t), 'waitlist.db')
  writeList(path, manyContacts(50_000))
  const child = childMove(t, sqlite(path), postgres(await server.database()), 2_000, ['--max-old-space-size=24'])
  const [code] = await child.closed
  assert.equal(code, 0)
  assert.ok(child.said().endsWith('moved'))
})
