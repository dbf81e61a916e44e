import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { signup } from '../contracts/store.place.ts'
import { startPostgres } from '../harness/postgres.ts'
import { contactsIn, rowsIn } from '../harness/postgres-contacts.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { openedOn } from './postgres.stage.ts'

const server = await startPostgres({ settings: { max_connections: '20' } })
after(() => server.remove())

const name = (i: number) => signup('Ada', `ada-${i}@example.com`)

test('while a synchronous standby is away, checks and signups say so, nothing is acknowledged, and connections do not pile up', {
  timeout: 90_000,
}, async t => {
  const { store, url } = await openedOn(server)(t)
  await store.admit(name(0))
  const away = async () => {
    await server.run(url, "alter system set synchronous_standby_names = 'nobody'", 'select pg_reload_conf()')
    await until(async () => {
      const [row] = await rowsIn<{ synchronous_standby_names: string }>(url, 'show synchronous_standby_names')
      return row!.synchronous_standby_names !== ''
    })
  }
  const back = () => server.run(url, 'alter system reset synchronous_standby_names', 'select pg_reload_conf()')
  const told = () =>
    until(() =>
      store.check().then(
        () => false,
        error => /standby/.test(String(error)),
      ),
    )
  const over = () =>
    until(() =>
      store.check().then(
        () => true,
        () => false,
      ),
    )

  if (isSlow) {
    // Before any signup meets it.
    await away()
    await told()
    await back()
    await over()
    assert.equal((await contactsIn(url)).length, 1, 'checks leave nothing behind')
  }

  await away()
  await assert.rejects(store.admit(name(1)), StoreUnavailable)
  for (let i = 2; i < (isSlow ? 40 : 12); i++) await assert.rejects(store.admit(name(i)), /standby/)
  await told()
  const [held] = await rowsIn<{ n: number }>(
    url,
    "select count(*)::int as n from pg_stat_activity where application_name = 'waitlist'",
  )
  assert.ok(held!.n <= 6, `${held!.n} connections`)

  await back()
  await over()
  assert.equal((await store.admit(name(50))).is, 'listed now')
  // Whoever was refused may be there after all, but once.
  assert.equal((await store.admit(name(1))).is, 'already listed')
  assert.ok((await contactsIn(url)).every(({ events }) => events === 1))
})
