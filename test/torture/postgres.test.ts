import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { isSlow, seeded, seedOf } from '../harness/environment.ts'
import { type Fault, startFaultProxy } from '../harness/fault-proxy.ts'
import { underLoad } from '../harness/instances.ts'
import { type PostgresServer, startPostgres } from '../harness/postgres.ts'
import { own } from '../harness/postgres-prepared.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { openScene, waitForHealth } from './scene.ts'
import { noSmallDisk, smallDisk } from './small-disk.ts'

/** Three instances in each: every answer is true, and nothing acknowledged is lost or doubled. */
const INSTANCES = 3
const skip = !isSlow && 'it takes half a minute; it runs in .ci/run'

async function started(t: TestContext): Promise<{ server: PostgresServer; url: string; random: () => number }> {
  const server = await startPostgres()
  t.after(() => server.remove())
  return { server, url: await server.database(), random: seeded(seedOf(t)) }
}

test('locked, without rights, read-only, stopped, failed over, paused: health says so, and signups are taken again', {
  skip,
}, async t => {
  const { server, url, random } = await started(t)
  const first = await openScene(t).start({ DATABASE_URL: url })
  await first.end('SIGTERM')
  await server.run(url, makeRole, ...grants(ROLE))
  const envOf = () => ({ DATABASE_URL: roleUrl(url) })
  const { programs, during, assertNothingLost } = await underLoad(t, url, { instances: INSTANCES, rest: 10, envOf })
  const readOnly = `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only`
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
      await server.stop('fast')
      return () => server.start()
    },
    async () => {
      await server.stop('immediate')
      server.failOver()
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

test('a full disk: health says so, and signups are taken again when there is room', {
  skip: skip || noSmallDisk,
}, async t => {
  const { server, url } = await started(t)
  const disk = smallDisk(t, 256 * 1024 * 1024)
  const files = join(disk.folder, 'files')
  mkdirSync(files)
  own(disk.folder)
  own(files)
  await server.run(url, `create tablespace small location '${files}'`, 'create database small tablespace small')
  const small = new URL(url)
  small.pathname = '/small'
  const { programs, during, assertNothingLost } = await underLoad(t, small.href, { instances: INSTANCES, rest: 10 })
  await during(async () => {
    disk.fill(0)
    await Promise.all(programs.map(({ baseUrl }) => waitForHealth(baseUrl, 503)))
    disk.empty()
  })
  await assertNothingLost()
})

test('links that are cut at any byte, late, mute or lose one way: signups are taken again by all', {
  skip,
}, async t => {
  const { server, url, random } = await started(t)
  const faults: readonly Fault[] = [
    { is: 'reset', most: 4_000 },
    { is: 'delay', most: 150 },
    { is: 'pause' },
    { is: 'black hole', loses: 'requests' },
    { is: 'black hole', loses: 'answers' },
  ]
  const links = await Promise.all(
    Array.from({ length: INSTANCES }, () => startFaultProxy(server.port, random() * 2 ** 32)),
  )
  for (const link of links) t.after(() => link.close())
  const envOf = (place: number) => ({ DATABASE_URL: url.replace(`:${server.port}/`, `:${links[place]!.port}/`) })
  const { during, assertNothingLost } = await underLoad(t, url, { instances: INSTANCES, rest: 10, envOf })
  for (const first of faults.keys()) {
    await during(async () => {
      for (const [i, link] of links.entries()) link.set(faults[(first + i) % faults.length]!)
      await wait(random() * 3_000)
      for (const link of links) link.set({ is: 'none' })
    })
  }
  await assertNothingLost()
})
