import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { StoreUnavailable } from '../../src/store/database.ts'
import { openDatabase } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { isSlow, noStrace } from '../harness/environment.ts'
import { noSmallDisk, smallDisk, temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { visit } from '../harness/load.ts'
import { recordingLog } from '../harness/log.ts'
import { hasSaid, type Program, runProgram, until } from '../harness/program.ts'
import { storeAt } from '../harness/store.ts'
import { onSqlite, pendingNow, signup } from './place.ts'

/** Milliseconds after which the files and the free space are looked at again. */
const LOOK = 260
const MB = 1024 * 1024

let visitors = 0
const somebody = () => signup('Visitor', `visitor-${++visitors}@example.com`)
const listed = { is: 'listed', joined: true } as const

async function opened(t: TestContext) {
  const place = await onSqlite(t)
  const store = await place.open()
  return { place, store, path: (place.location as { path: string }).path }
}

async function refusesEverything(store: Store): Promise<void> {
  const tries = Array.from({ length: 50 }, () => store.admit(somebody()))
  for (const each of await Promise.allSettled(tries)) {
    assert.equal(each.status, 'rejected')
    assert.ok(each.reason instanceof StoreUnavailable)
  }
  await assert.rejects(store.check(), StoreUnavailable)
}

describe('what passes by itself', { concurrency: true }, () => {
  test('a lock that a command keeps is waited for; if it lasts, signups are refused, and it goes on afterwards', async t => {
    const { place, store } = await opened(t)
    const letGo = await place.hold()
    await assert.rejects(store.admit(somebody()), StoreUnavailable)
    const late = store.admit(somebody())
    await wait(300)
    await letGo()
    assert.equal((await late).is, 'listed now')
    await store.check()
  })

  test('with less than 64 MiB free nothing is admitted or claimed, and what is under way can be settled', {
    skip: noSmallDisk,
  }, async t => {
    let store: Store | undefined
    t.after(() => store?.close())
    const disk = smallDisk(t, 100 * MB)
    store = await storeAt(join(disk.folder, 'waitlist.db'), { provider: 'loops', destinations: ['webhook'] })
    const [one, two] = [await pendingNow(store), await pendingNow(store, 'bob@example.com')]
    await store.settle(two, listed)
    const [event] = await store.claim('webhook', 1)
    disk.fill(32 * MB)
    await wait(LOOK)
    await assert.rejects(store.admit(somebody()), /bytes are free/)
    await assert.rejects(store.claim('webhook', 1), StoreUnavailable)
    await assert.rejects(store.check(), StoreUnavailable)
    assert.equal(await store.settle(one, listed), true)
    assert.equal(await store.settle(event!, { is: 'delivered' }), true)
    assert.match(await store.secret('links'), /^[0-9a-f]{64}$/)
    disk.empty()
    await wait(LOOK)
    await pendingNow(store, 'cyd@example.com')
  })
})

describe('what ends the store', { concurrency: true }, () => {
  const failures: Readonly<
    Record<string, readonly [vanish: (path: string) => void, ask: (store: Store) => Promise<unknown>]>
  > = {
    'the file is deleted, at a signup': [unlinkSync, store => store.admit(somebody())],
    'the file is replaced, at a check': [
      path => {
        withDatabase(`${path}.other`, database => database.exec('create table other (number integer primary key)'))
        renameSync(`${path}.other`, path)
      },
      store => store.check(),
    ],
    'its log is deleted, at a settlement': [
      path => unlinkSync(`${path}-wal`),
      store => store.settle({ number: 1, token: '' } as never, listed).then(() => store.check()),
    ],
  }
  for (const [what, [vanish, ask]] of Object.entries(failures)) {
    test(`${what}: nothing more is acknowledged`, async t => {
      const { store, path } = await opened(t)
      await store.admit(somebody())
      vanish(path)
      await wait(LOOK)
      await assert.rejects(ask(store), StoreUnavailable)
      assert.match((await store.failure).message, /was moved or deleted/)
      await refusesEverything(store)
    })
  }

  test('pages that turn to garbage end it', async t => {
    const { store, path } = await opened(t)
    withDatabase(path, database => {
      database.exec(
        'insert into contact (id, name, email, email_key, state, created_at) with recursive n (i) as' +
          " (select 1 union all select i + 1 from n where i < 50000) select i, printf('%0100d', i), i, i || '@example.com', 'listed', 0 from n",
      )
      assert.equal(database.prepare('pragma wal_checkpoint(truncate)').get()?.busy, 0)
    })
    const { size } = statSync(path)
    assert.ok(size > 6 * MB, 'more than the cache of the connection holds')
    // By another process: closing a file frees all locks that its own process has on it.
    const garble =
      'const fs = require("node:fs"); const f = fs.openSync(process.argv[1], "r+");' +
      'fs.writeSync(f, Buffer.alloc(process.argv[2] - 4096, 0xa5), 0, undefined, 4096); fs.closeSync(f)'
    assert.equal(spawnSync(process.execPath, ['-e', garble, path, String(size)]).status, 0)
    await assert.rejects(Promise.all(Array.from({ length: 2_000 }, () => store.admit(somebody()))), StoreUnavailable)
    assert.match((await store.failure).message, /malformed|corrupt/)
    await refusesEverything(store)
  })
})

const env = {
  HOST: '127.0.0.1',
  RATE_LIMIT: '1000000',
  SHUTDOWN_DELAY: '0',
  DATABASE_URL: 'sqlite:waitlist.db',
}

/** The service, whose calls are made to fail. strace counts those of each thread. */
async function faulty(t: TestContext, inject: string): Promise<{ cwd: string; program: Program }> {
  const cwd = temporaryFolder(t)
  await (await openDatabase({ kind: 'sqlite', path: join(cwd, 'waitlist.db') }, recordingLog().log)).close()
  const strace = ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fdatasync', '-e', `inject=${inject}`]
  return { cwd, program: await runProgram(t, env, { cwd, through: strace }) }
}

/** One after the other. Returns those who were acknowledged, until there is no answer. */
async function signUpUntilItEnds(program: Program): Promise<string[]> {
  const acknowledged: string[] = []
  for (let i = 0; ; i++) {
    const email = `visitor-${i}@example.com`
    const answer = await visit(program, email)
    if (answer === null) return acknowledged
    if (answer.status === 200) acknowledged.push(email)
  }
}

describe('a disk that fails', { concurrency: 2, timeout: 120_000, skip: noStrace() }, () => {
  test('a sync of the log that fails ends the process; nothing that was acknowledged is lost', async t => {
    const { cwd, program } = await faulty(t, 'fdatasync:error=EIO:when=3')
    const acknowledged = await signUpUntilItEnds(program)
    assert.ok(acknowledged.length > 0)
    assert.equal(await program.exited, null, 'killed')
    assert.ok(hasSaid(program, 'the store failed: nothing more is acknowledged, the process ends'))
    assert.match(program.stdout(), /waitlist\.db: EIO: i\/o error, fdatasync/)
    await runProgram(t, env, { cwd })
    const events = new Map(contactsIn(join(cwd, 'waitlist.db')).map(contact => [contact.email, contact.events]))
    for (const email of acknowledged) assert.equal(events.get(email), 1, email)
  })

  test('one whose syncs hang: health says so, and a stop ends in time', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { program } = await faulty(t, 'fdatasync:delay_enter=20000000:when=2+')
    const hangs = signUpUntilItEnds(program)
    await until(async () => (await fetch(`${program.baseUrl}/api/health`)).status === 503)
    program.process.kill('SIGTERM')
    await until(() => hasSaid(program, 'could not finish in time'))
    // When strace lets it go.
    assert.equal(await program.exited, null)
    await hangs
  })
})

test('neither a dead resolver nor destinations that hang keep a signup waiting', {
  timeout: 60_000,
  skip: noSmallDisk || (!isSlow && 'it runs in .ci/run'),
}, async t => {
  const resolver = createSocket('udp4').bind(53, '127.9.9.9')
  await once(resolver, 'listening')
  t.after(() => resolver.close())
  const cwd = temporaryFolder(t)
  writeFileSync(join(cwd, 'resolv.conf'), 'nameserver 127.9.9.9\noptions timeout:30 attempts:5\n')
  const mount = 'mount --bind resolv.conf /etc/resolv.conf && exec "$@"'
  const program = await runProgram(
    t,
    {
      ...env,
      WEBHOOK_URL: 'https://webhook.example/events',
      WEBHOOK_SECRET: webhookSecret,
      SLACK_WEBHOOK_URL: 'https://hooks.slack.com/services/T/B/x',
    },
    { cwd, through: ['unshare', '--mount', 'sh', '-c', mount, 'sh'] },
  )
  for (let i = 0; i < 100; i++) {
    assert.equal((await visit(program, `visitor-${i}@example.com`))?.status, 200)
  }
})
