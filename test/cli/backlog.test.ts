import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { pendingNow } from '../contracts/store.place.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { complaintsIn, logOf, runProgram, until } from '../harness/program.ts'

test('what waits for the operator is told at the start', { timeout: 60_000 }, async t => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'waitlist.db')
  const destinations = ['webhook', 'chat']
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', provider: 'loops', destinations })
  await store.settle(await pendingNow(store, 'ada@example.com'), { is: 'listed', joined: true })
  await pendingNow(store, 'eve@example.com')
  const [delivery] = await store.claim('chat', 1)
  await store.settle(delivery!, { is: 'abandoned', why: 'HTTP 404' })
  await store.close()

  const program = await runProgram(t, { DATABASE_URL: `sqlite:${path}` }, { cwd: folder })
  const told = () => complaintsIn(logOf(program)).filter(({ msg }) => !String(msg).includes('plain HTTP'))
  await until(() => told().length === 3)
  assert.deepEqual(
    told().map(({ pending, destination, deliveries, abandoned }) => ({ pending, destination, deliveries, abandoned })),
    [
      { pending: 1, destination: undefined, deliveries: undefined, abandoned: undefined },
      { pending: undefined, destination: 'webhook', deliveries: 1, abandoned: undefined },
      { pending: undefined, destination: undefined, deliveries: undefined, abandoned: 1 },
    ],
  )
})
