import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Desk } from './operator.ts'
import { pendingNow } from './store.place.ts'

/** What an examination finds. `longAgo`: a moment long ago, as the engine keeps it. */
export function integrityContract(name: string, open: (t: TestContext) => Promise<Desk>, longAgo: string): void {
  describe(`an examination of ${name}`, { timeout: 180_000 }, () => {
    test('finds nothing in a list that is sound', async t => {
      const { store, operator } = await open(t)
      await store.settle(await pendingNow(store, 'ada@example.com'), { is: 'listed', joined: true })
      await pendingNow(store, 'bob@example.com')
      const { size, free, ...found } = (await operator.checkIntegrity())!
      assert.deepEqual(found, { damage: null, orphans: 0, unrecognised: 0, staleLeases: 0 })
      assert.ok(size > 10_000)
      assert.ok(free === null || free.bytes > 0)
    })

    test('finds what was edited by hand, and what a dead process has left', async t => {
      const { store, operator, sql } = await open(t)
      for (const who of ['ada', 'bob', 'cyd']) await pendingNow(store, `${who}@example.com`)
      await sql("update contact set email = 'Else@example.com' where email = 'ada@example.com'")
      await sql(`update delivery set due_at = ${longAgo} where token is not null`)
      await sql(
        'insert into delivery (contact, destination, due_at)' +
          ` select max(number) + 10, 'webhook', ${longAgo} from contact`,
        'unchecked',
      )
      const { orphans, unrecognised, staleLeases } = (await operator.checkIntegrity())!
      assert.deepEqual({ orphans, unrecognised, staleLeases }, { orphans: 1, unrecognised: 1, staleLeases: 3 })
    })

    test('reads a secret of the services, once they have made it', async t => {
      const { store, operator } = await open(t)
      assert.equal(await operator.secret('check'), null)
      const made = await store.secret('check')
      assert.equal(await operator.secret('check'), made)
    })
  })
}
