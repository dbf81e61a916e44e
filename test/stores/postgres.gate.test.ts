/** The gate on PostgreSQL, while connections and instances are lost. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BEGIN, LOCK } from '../../src/stores/postgres/gate.ts'
import { signup } from '../contracts/store.place.ts'
import { sharedPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { BOUND, session, stagesOn } from './postgres.stage.ts'

const server = await sharedPostgres()
const stage = stagesOn(server)
const skip = !isSlow && 'it runs in .ci/run'

const rules = { above: 100_000, window: 3_600_000, suspicious: true }
const arrivals = async (url: string) =>
  (await rowsIn<{ count: number }>(url, 'select count(*)::int from arrival'))[0]!.count

describe('the gate on PostgreSQL', { concurrency: 3 }, () => {
  for (const [answer, again, above, reason] of [
    ['listed now', 'already listed', 100_000, null],
    ['held now', 'still held', 0, 'above-limit'],
  ] as const) {
    test(`a connection that is cut after any message: ${answer}, once, with one place and one proof`, {
      skip,
    }, async t => {
      const { proxy, url, open } = await stage(t)
      const store = await open(true, null, { ...rules, above })
      const other = await open(false, null, { ...rules, above })
      const cuts = new Set<string>()
      for (let number = 1; ; number++) {
        const email = `visitor-${number}@gmail.com`
        const proof = { nonce: `nonce ${number}`, expires: new Date(Date.now() + 600_000) }
        proxy.after(number, 'cut')
        const admission = await store.admit({ ...signup('Ada', email), proof })
        const last = proxy.end()
        assert.equal(admission.is, answer)
        assert.equal((await other.admit({ ...signup('Eve', `eve-${number}@gmail.com`), proof })).is, 'spent')
        assert.equal((await other.admit({ ...signup('Ada', email), proof })).is, again)
        assert.equal(await arrivals(url), reason === null ? number : 0)
        const kept = (await contactsIn(url)).filter(each => each.email === email)
        assert.deepEqual(
          kept.map(({ events }) => events),
          [reason === null ? 1 : 0],
        )
        if (last === undefined) break
        cuts.add(`${last.side} ${last.name}`)
      }
      for (const needed of ['frontend Query', 'frontend Sync', 'backend CommandComplete', 'backend ReadyForQuery']) {
        assert.ok(cuts.has(needed), `never cut after ${needed}`)
      }
    })
  }

  test('an instance that falls silent while it decides keeps the others waiting, but not for long', {
    skip,
  }, async t => {
    const { url, open } = await stage(t)
    // As behind a pooler, which takes no timeouts with a connection, and keeps it.
    const database = decodeURIComponent(new URL(url).pathname.slice(1))
    const store = await open(false, null, rules)
    await server.run(url, `alter database "${database}" set idle_in_transaction_session_timeout = 0`)
    const silent = await session(t, url)
    await silent.query(BEGIN)
    await silent.query(LOCK, [null])
    const since = performance.now()
    assert.equal((await store.admit(signup('Eve', 'eve@gmail.com'))).is, 'listed now')
    assert.ok(performance.now() - since < BOUND)
  })

  test('among very many arrivals, proofs and mailboxes each is found by an index', { skip }, async t => {
    const { url, open } = await stage(t)
    await (await open(false, null, rules)).close()
    await server.run(
      url,
      `insert into contact (id, name, email, email_key, state, created_at, event_name, event_at, mailbox)
        select gen_random_uuid(), 'Visitor', 'v' || i || '@gmail.com', 'v' || i || '@gmail.com', 'listed', now(),
          'waitlist.joined', now(), 'v' || i || '@gmail.com' from generate_series(1, 200000) as i`,
      "insert into arrival (number, at) select i, now() - (i < 50000)::int * interval '1 day' - interval '1 second' from generate_series(0, 149999) as i",
      `insert into spent (nonce, claimant, expires_at) select 'n' || i, 'c', now() + (i % 2 - 0.5) * interval '1 hour'
        from generate_series(1, 100000) as i`,
      'analyze',
    )
    const wholes = async () =>
      Object.fromEntries(
        (
          await rowsIn<{ name: string; reads: number }>(
            url,
            "select relname as name, seq_scan::int as reads from pg_stat_user_tables where relname in ('contact', 'spent', 'arrival')",
          )
        ).map(({ name, reads }) => [name, reads]),
      )
    const found = async () =>
      Number(
        (
          await rowsIn<{ found: string }>(
            url,
            "select idx_scan as found from pg_stat_user_tables where relname = 'arrival'",
          )
        )[0]!.found,
      )
    // The opening alone looks at contacts. A session tells what it read when it ends.
    await (await open(false, null, rules)).close()
    const [before, seen] = [await wholes(), await found()]
    const store = await open(false, null, rules)
    const expires = new Date(Date.now() + 600_000)
    const answers = await Promise.all(
      Array.from({ length: 400 }, (_, i) =>
        store.admit({
          ...signup('Ada', `v.${i}@${['gmail.com', 'example.com'][i % 2]}`),
          proof: { nonce: `p${i}`, expires },
        }),
      ),
    )
    assert.deepEqual(new Set(answers.map(({ is }) => is)), new Set(['held now']))
    await store.close()
    await until(async () => (await found()) > seen)
    const opening = { ...(await wholes()) }
    assert.deepEqual({ ...opening, contact: 0 }, { ...before, contact: 0 })
    assert.ok(opening.contact! - before.contact! <= 2, `${opening.contact! - before.contact!} times contact`)
    const [left] = await rowsIn<{ arrivals: number; proofs: number }>(
      url,
      'select (select count(*)::int from arrival) as arrivals, (select count(*)::int from spent) as proofs',
    )
    // It swept as many as came, and some more for each batch.
    assert.ok(left!.arrivals <= 150_000 - 400 && left!.proofs <= 100_000, JSON.stringify(left))
  })

  test('what others stored while it waited for them is seen, whatever the database says about isolation', async t => {
    const { url, open } = await stage(t)
    const { pathname } = new URL(url)
    const database = decodeURIComponent(pathname.slice(1))
    await server.run(url, `alter database "${database}" set default_transaction_isolation = 'repeatable read'`)
    // Nobody counts, so that no row is in both transactions: the server would refuse one, which is then tried again.
    const store = await open(false, null, { ...rules, above: null })
    const other = await session(t, url)
    await other.query('begin')
    await other.query(LOCK, [null])
    const admission = store.admit(signup('Ada', 'a.da@gmail.com'))
    const waiting =
      "select 1 from pg_locks join pg_database on oid = database where datname = current_database() and locktype = 'advisory' and not granted"
    await until(async () => (await rowsIn(url, waiting)).length === 1)
    await other.query(
      `insert into contact (id, name, email, email_key, state, created_at, event_name, event_at, mailbox)
        values (gen_random_uuid(), 'Ada', 'ada@gmail.com', 'ada@gmail.com', 'listed', now(), 'waitlist.joined', now(), 'ada@gmail.com')`,
    )
    await other.query('commit')
    assert.deepEqual(await admission, { is: 'held now', reason: 'same-mailbox' })
  })
})
