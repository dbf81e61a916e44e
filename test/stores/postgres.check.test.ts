/**
 * Health tells whether a signup could be committed, also where nobody signs up: within five seconds a balancer knows that
 * it cannot, and within five seconds after the repair that it can.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { type PostgresDatabases, startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-database.ts'
import { own } from '../harness/postgres-prepared.ts'
import { grants, makeRole, ROLE, roleUrl } from '../harness/postgres-role.ts'
import { until } from '../harness/program.ts'
import { recordingLog, startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { session } from './postgres.stage.ts'

/** Milliseconds in which a balancer must know: five seconds, and the rest is for a busy machine. */
const PROMISED = 30_000

async function served(t: TestContext, url: string) {
  const service = await startService(t, { DATABASE_URL: url })
  let visitors = 0
  const health = async () => (await fetch(`${service.baseUrl}/api/health`)).status
  return {
    stop: service.stop,
    async signUp(): Promise<number> {
      const body = JSON.stringify({ name: 'Ada', email: `visitor-${visitors++}@example.com` })
      const headers = { 'content-type': 'application/json' }
      return (await fetch(`${service.baseUrl}/api/waitlist`, { method: 'POST', headers, body })).status
    },
    /** Asks as often as a balancer does. */
    async becomes(status: number): Promise<void> {
      for (const end = performance.now() + PROMISED; (await health()) !== status; await wait(250)) {
        assert.ok(performance.now() < end, `health is not ${status} after ${PROMISED} ms`)
      }
    },
  }
}

/** Keeps the role of the service, which owns nothing, from storing a signup. Its result is the repair. */
type Break = (t: TestContext, url: string, run: PostgresDatabases['run']) => Promise<() => Promise<unknown>>

const locked =
  (table: string): Break =>
  async (t, url) => {
    const operator = await session(t, url)
    await operator.query('begin')
    await operator.query(`lock table ${table} in access exclusive mode`)
    return () => operator.query('rollback')
  }

const revoked =
  (table: string): Break =>
  async (_, url, run) => {
    await run(url, `revoke insert on ${table} from ${ROLE}`)
    return () => run(url, `grant insert on ${table} to ${ROLE}`)
  }

const readOnly: Break = async (_, url, run) => {
  const setting = `database ${new URL(url).pathname.slice(1)} set default_transaction_read_only`
  const end = "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'waitlist'"
  await run(url, `alter ${setting} = on`, `${end} and datname = current_database()`)
  return () => run(url, 'set default_transaction_read_only = off', `alter ${setting} = off`)
}

const breaks: Readonly<Record<string, Break>> = {
  'the right to add deliveries was taken away': revoked('delivery'),
  'the table of contacts is locked': locked('contact'),
  'the database is read-only': readOnly,
}

const skip = !isSlow && 'each takes seconds; .ci/run does it'

describe('while signups cannot be stored', { concurrency: 6, skip }, async () => {
  const server = await startPostgres({ settings: unsynced })
  after(() => server.remove())
  const template = await server.database()
  const parts = { url: template, eventName: 'waitlist.joined', log: recordingLog().log }
  await (await postgresStore(parts)).close()
  await server.run(template, makeRole, ...grants(ROLE))

  for (const [what, breaking] of Object.entries(breaks)) {
    test(`since ${what}, health says so though nobody signs up, and when they can be again`, async t => {
      const url = await server.database(template)
      const { signUp, becomes } = await served(t, roleUrl(url))
      await becomes(200)
      const repair = await breaking(t, url, server.run)
      await becomes(503)
      assert.equal(await signUp(), 500)
      await becomes(503)
      await repair()
      await becomes(200)
      assert.equal(await signUp(), 200)
      // What waits for a lock may be stored as soon as it is given back, although it was answered with a 500 before.
      const most = what.endsWith('is locked') ? 2 : 1
      const { length } = await contactsIn(url)
      assert.ok(length >= 1 && length <= most, `${length} were stored`)
    })
  }

  test('since the disk is full, health says so, and when they can be again', async t => {
    const disk = smallDisk()
    if (disk === null) return t.skip('no disk of its own can be mounted here')
    const url = new URL(await server.database())
    const name = url.pathname.slice(1)
    const onDisk = new URL(`/${name}_on_disk`, url)
    const owner = onDisk.pathname.slice(1)
    let stop = async () => {}
    t.after(async () => {
      await stop()
      await server.run(url.href, `drop database if exists ${owner} with (force)`, 'drop tablespace if exists small')
      disk.remove()
    })
    await server.run(url.href, `create tablespace small location '${disk.folder}'`)
    await server.run(url.href, `create database ${owner} tablespace small`)
    const service = await served(t, onDisk.href)
    stop = service.stop
    await service.becomes(200)
    disk.fill()
    // What is left of the last page may do for some.
    const crowd = () => Promise.all(Array.from({ length: 300 }, () => service.signUp()))
    await until(async () => (await crowd()).every(status => status === 500))
    const visits = setInterval(() => void crowd().catch(() => {}), 500)
    await service.becomes(503).finally(() => clearInterval(visits))
    disk.clear()
    await service.becomes(200)
    assert.equal(await service.signUp(), 200)
  })
})

/** A disk in memory; null where this process may not mount one. */
function smallDisk() {
  const mounted = mkdtempSync(join(tmpdir(), 'waitlist-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', mounted], { stdio: 'ignore' })
  } catch {
    rmdirSync(mounted)
    return null
  }
  const folder = join(mounted, 'space')
  mkdirSync(folder)
  own(folder)
  chmodSync(mounted, 0o755)
  const ballast = join(mounted, 'ballast')
  return {
    folder,
    fill() {
      const { bavail, bsize } = statfsSync(mounted)
      writeFileSync(ballast, Buffer.alloc(bavail * bsize))
    },
    clear: () => rmSync(ballast),
    remove() {
      execFileSync('umount', [mounted])
      rmdirSync(mounted)
    },
  }
}
