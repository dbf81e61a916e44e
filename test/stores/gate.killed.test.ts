import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import type { Store } from '../../src/waitlist/ports/store.ts'
import { signup } from '../contracts/store.place.ts'
import { sqlOn as sqliteSql } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { sqlOn as postgresSql } from '../harness/postgres-contacts.ts'
import { endedAt } from '../harness/postgres-database.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const ROUNDS = 8
const parts = {
  eventName: 'waitlist.joined',
  destinations: ['webhook'],
  minimumFree: 0,
  holds: { above: 1_000_000, window: 3_600_000, suspicious: true },
}

/** Two addresses want each proof. */
const addresses = (nonce: string) => ['ada', 'eve'].map(who => `${who}-${nonce}@gmail.com`)
const withProof = (nonce: string, email: string) => ({
  ...signup('Visitor', email),
  proof: { nonce, expires: new Date(Date.now() + 3_600_000) },
})

/** A store in a process of its own, which admits without an end and says what was answered. */
function childStore(t: TestContext, kind: 'sqlite' | 'postgres', place: string, round: number) {
  const code = `
    import { ${kind}Store as open } from ${JSON.stringify(new URL(`../../src/stores/${kind}/store.ts`, import.meta.url))}
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    const place = ${JSON.stringify(kind === 'sqlite' ? { path: place } : { url: place })}
    const store = await open({ ...${JSON.stringify(parts)}, provider: null, ...place, log })
    const expires = new Date(Date.now() + 3_600_000)
    for (let i = 0; ; ) {
      await Promise.all(Array.from({ length: 16 }, async () => {
        const nonce = '${round}-' + i++
        await Promise.all(['ada', 'eve'].map(async who => {
          const email = who + '-' + nonce + '@gmail.com'
          const { is } = await store.admit({ name: 'Visitor', email, proof: { nonce, expires } })
          process.stdout.write(JSON.stringify([nonce, email, is]) + '\\n')
        }))
      }))
    }`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', code], {
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
    /** What was answered before its end. */
    async kill(): Promise<readonly [nonce: string, email: string, is: string][]> {
      child.kill('SIGKILL')
      await closed
      return said
        .split('\n')
        .slice(0, -1)
        .map(line => JSON.parse(line))
    },
  }
}

describe('kill -9 between the claim of a proof and its commit', {
  skip: !isSlow && 'it runs in .ci/run',
  timeout: 240_000,
}, async () => {
  const server = isSlow ? await startPostgres({ settings: unsynced }) : undefined
  after(() => server?.remove())
  const places = {
    async sqlite(t: TestContext) {
      const path = join(temporaryFolder(t), 'waitlist.db')
      const over = async () => {}
      return { place: path, open: () => sqliteStore({ ...parts, path }), sql: sqliteSql(path), over }
    },
    async postgres() {
      const url = await server!.database()
      const open = () => postgresStore({ ...parts, provider: null, url, log: recordingLog().log })
      return { place: url, open, sql: postgresSql(url), over: () => endedAt(url) }
    },
  }
  for (const kind of ['sqlite', 'postgres'] as const) {
    test(`${kind}: no proof is lost for its address, and none is used twice`, async t => {
      const { place, open, sql, over } = await places[kind](t)
      for (let round = 0; round < ROUNDS; round++) {
        const child = childStore(t, kind, place, round)
        await child.begun
        await wait(Math.random() * 300)
        const answers = await child.kill()
        await over()
        const store: Store = await open()
        try {
          // A claim without its contact would be a transaction in two parts.
          const mine = `like '${round}-%'`
          const claimed = await sql(`select nonce from spent where nonce ${mine} order by nonce`)
          const emails = await sql(
            `select substr(email_key, 5) as email from contact where email_key like '%-${round}-%'`,
          )
          assert.deepEqual(
            emails.map(({ email }) => String(email).replace('@gmail.com', '')).sort(),
            claimed.map(({ nonce }) => nonce as string).sort(),
          )
          assert.ok(answers.length > 0)
          const owners = new Map(
            answers.filter(([, , is]) => is === 'listed now').map(([nonce, email]) => [nonce, email]),
          )
          const nonces = new Set([...answers.map(([nonce]) => nonce), ...claimed.map(({ nonce }) => nonce as string)])
          for (const nonce of nonces) {
            const [ada, eve] = addresses(nonce) as [string, string]
            const owner = owners.get(nonce)
            const first = owner === eve ? eve : ada
            const again = (await store.admit(withProof(nonce, first))).is
            if (owner !== undefined) assert.equal(again, 'already listed', nonce)
            // Nobody was told whose it is: it is somebody's now, and stays so.
            const other = (await store.admit(withProof(nonce, first === ada ? eve : ada))).is
            assert.deepEqual([again, other].filter(is => is === 'spent').length, 1, `${nonce} ${again} ${other}`)
          }
        } finally {
          await store.close()
        }
      }
      const [twice] = await sql('select count(*) as count from contact')
      const [spent] = await sql('select count(*) as count from spent')
      assert.equal(Number(twice!.count), Number(spent!.count))
    })
  }
})
