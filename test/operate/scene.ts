import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { rememberErasure } from '../../src/store/erasures.ts'
import type { Store } from '../../src/store/store.ts'
import { sqlOn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { storeAt } from '../harness/store.ts'
import { pendingNow } from '../store/place.ts'

export const id = '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'

/**
 * A folder with `data/waitlist.db`, where the program looks by default, open in a store. Ada is listed, her webhook
 * delivered and her mail abandoned; Bob is pending; Cyd joined in 1970 with a source and a name that is no good guest on a
 * terminal; Bob and gone@example.com were erased in 1970, and Bob has come back.
 */
export async function scene(t: TestContext): Promise<{ readonly cwd: string; readonly store: Store }> {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await storeAt(path, { provider: 'loops', destinations: ['webhook', 'mail'] })
  t.after(store.close)
  const enlist = async (name: string, email: string, joined: boolean) =>
    store.settle(await pendingNow(store, email, name), { is: 'listed', joined, providerId: `at-${name[0]}` })
  await enlist('Ada Lovelace', 'Ada@Example.com', true)
  await store.settle((await store.claim('webhook', 1))[0]!, { is: 'delivered' })
  await store.settle((await store.claim('mail', 1))[0]!, {
    is: 'abandoned',
    why: 'HTTP 404:\u001b[31m not\n\u2028found',
  })
  await pendingNow(store, 'bob@example.com', 'Bob 李')
  await enlist('Cyd \u202Eevil', 'cyd@example.com', false)
  const sql = sqlOn(path)
  const source = JSON.stringify({ utm_source: 'news', utm_medium: '=1+1', ref: 'x, "y"' })
  await sql(
    `update contact set created_at = 0, source = '${source}', source_label = 'news' where email = 'cyd@example.com'`,
  )
  for (const who of ['gone@example.com', 'bob@example.com']) await store.transaction(tx => rememberErasure(tx, who, 0))
  await sql('update erased set erased_at = 0')
  return { cwd, store }
}

/** Adds so many contacts that reading all of them takes a moment. */
export const addMany = (cwd: string, count: number): unknown =>
  withDatabase(join(cwd, 'data', 'waitlist.db'), database =>
    database.exec(
      'insert into contact (id, name, email, email_key, state, created_at)' +
        ` with recursive n (i) as (select 1 union all select i + 1 from n where i < ${count})` +
        " select format('%036d', i), 'Visitor', i || '@example.com', i || '@example.com', 'listed', 0 from n",
    ),
  )
