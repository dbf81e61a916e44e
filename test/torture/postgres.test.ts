/** Three instances whose PostgreSQL, disk or network fails: every answer is true, and nothing acknowledged is lost or doubled. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { seeded, seedOf, skipSlow } from '../harness/environment.ts'
import { type Fault, startFaultProxy } from '../harness/fault-proxy.ts'
import { noSmallDisk, smallDisk } from '../harness/folder.ts'
import { underLoad } from '../harness/instances.ts'
import { own, startPostgres } from '../harness/postgres.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-database.ts'
import { openFixture, waitForHealth } from './fixture.ts'

async function openServer(t: TestContext) {
  const server = await startPostgres()
  t.after(() => server.remove())
  return { server, random: seeded(seedOf(t)) }
}

test('locked, without rights, read-only, full, stopped, failed over, paused: health says so, and signups are taken again', {
  skip: skipSlow || noSmallDisk,
}, async t => {
  const { server, random } = await openServer(t)
  const disk = smallDisk(t, 256 * 1024 * 1024)
  const files = join(disk.folder, 'files')
  mkdirSync(files)
  own(disk.folder)
  own(files)
  const url = await server.database()
  const name = new URL(url).pathname.slice(1)
  const elsewhere = new URL(url)
  elsewhere.pathname = '/postgres'
  await server.run(
    elsewhere.href,
    `create tablespace small location '${files}'`,
    `alter database ${name} set tablespace small`,
  )
  const first = await openFixture(t).start({ DATABASE_URL: url })
  await first.end('SIGTERM')
  await server.run(url, makeRole, ...grants(ROLE))
  const { programs, during, assertNothingLost } = await underLoad(t, url, () => ({ DATABASE_URL: roleUrl(url) }))
  const readOnly = `alter database ${name} set default_transaction_read_only`
  const disconnect =
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'waitlist' and datname = current_database()"

  /** Each does harm, and returns what repairs it. */
  const faults: readonly (() => Promise<() => unknown>)[] = [
    async () => {
      const client = new pg.Client(url)
      await client.connect()
      await client.query('begin; lock table contact in access exclusive mode')
      return () => client.end()
    },
    async () => {
      await server.run(url, `revoke insert on contact from ${ROLE}`)
      return () => server.run(url, `grant insert on contact to ${ROLE}`)
    },
    async () => {
      await server.run(url, `${readOnly} = on`, disconnect)
      return () => server.run(url, 'set default_transaction_read_only = off', `${readOnly} = off`)
    },
    async () => {
      disk.fill(0)
      return disk.empty
    },
    async () => {
      await server.stop('fast')
      return () => server.start()
    },
    async () => {
      await server.stop('immediate')
      return () => server.start()
    },
    async () => {
      server.pause()
      return () => server.goOn()
    },
  ]
  for (const fault of faults) {
    await during(async () => {
      await wait(random() * 500)
      const repair = await fault()
      await Promise.all(programs.map(({ baseUrl }) => waitForHealth(baseUrl, 503)))
      await repair()
    })
  }
  await assertNothingLost()
})

test('links that are cut at any byte, late, mute or lose one way: signups are taken again by all', {
  skip: skipSlow,
}, async t => {
  const { server, random } = await openServer(t)
  const url = await server.database()
  const faults: readonly Fault[] = [
    { is: 'reset', most: 4_000 },
    { is: 'delay', most: 150 },
    { is: 'pause' },
    { is: 'black hole', loses: 'requests' },
    { is: 'black hole', loses: 'answers' },
  ]
  const links = await Promise.all([0, 1, 2].map(() => startFaultProxy(server.port, random() * 2 ** 32)))
  for (const link of links) t.after(() => link.close())
  const { during, assertNothingLost } = await underLoad(t, url, index => ({
    DATABASE_URL: url.replace(`:${server.port}/`, `:${links[index]!.port}/`),
  }))
  for (const first of faults.keys()) {
    await during(async () => {
      for (const [i, link] of links.entries()) link.set(faults[(first + i) % faults.length]!)
      await wait(random() * 3_000)
      for (const link of links) link.set({ is: 'none' })
    })
  }
  await assertNothingLost()
})
