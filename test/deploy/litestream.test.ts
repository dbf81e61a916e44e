import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { checkout } from '../harness/checkout.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { killUnderLoad } from '../harness/kill.ts'
import { Ledger } from '../harness/ledger.ts'
import { complaintsIn, logOf, runProgram, until } from '../harness/program.ts'
import { seeded, seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'docs/litestream.md'), 'utf8')
const [start, restore] = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!)

const version = spawnSync('litestream', ['version'], { encoding: 'utf8' }).stdout ?? ''
const [, major = 0, minor = 0, patch = 0] = (/v?(\d+)\.(\d+)\.(\d+)/.exec(version) ?? []).map(Number)
const isSound = major > 0 || minor > 5 || (minor === 5 && patch >= 17)

const ROUNDS = 8

test('Litestream, which starts the service and is killed with it, keeps every acknowledged signup, and brings it to a new machine', {
  skip: !isSlow
    ? 'slow: WAITLIST_SLOW_TESTS=1'
    : !isSound && 'no Litestream 0.5.17 or newer is on the PATH; go install makes one',
  timeout: 170_000,
}, async t => {
  const random = seeded(seedOf(t))
  const machine = temporaryFolder(t)
  const path = join(machine, 'waitlist.db')
  const env = {
    PATH: process.env.PATH!,
    WAITLIST_DATABASE: path,
    LITESTREAM_REPLICA_URL: `file://${join(temporaryFolder(t), 'replica')}`,
  }
  const typed = (block: string) =>
    block.replaceAll(/^export .*\n/gm, '').replaceAll('deploy/litestream.yml', join(root, 'deploy/litestream.yml'))

  const settings = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', DATABASE_URL: `sqlite:${path}` }
  const replicate = `exec ${typed(start!).trim().replace('npm start', '$*')}`
  /** Litestream, which starts the service. The service is killed, and Litestream ends by itself or is killed with it. */
  const run = async ({ atOnce = false } = {}) => {
    const program = await runProgram(
      t,
      { ...settings, ...env },
      { cwd: machine, through: ['sh', '-c', replicate, 'sh'] },
    )
    const { pid } = logOf(program)[0] as { pid: number }
    t.after(() => {
      try {
        process.kill(pid, 'SIGKILL')
      } catch {
        // It has ended.
      }
    })
    const end = async (signal: NodeJS.Signals) => {
      if (atOnce) program.process.kill(signal)
      process.kill(pid, signal)
      assert.equal(await program.exited, atOnce ? null : 1)
      return null
    }
    return { ...program, end }
  }

  const ledger = new Ledger()
  const logged: Record<string, unknown>[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const program = await run({ atOnce: round % 2 === 0 })
    await killUnderLoad(program, { ledger, round, random, most: 2_000 })
    logged.push(...logOf(program))
  }
  // What was acknowledged is there after a while, at the latest when this test times out.
  const program = await run()
  const copy = join(machine, 'copy.db')
  const copied = async () => {
    for (const ending of ['', '-wal', '-shm', '-txid']) rmSync(copy + ending, { force: true })
    const command = typed(restore!.split('\n')[0]!).replace('replica.db', copy)
    await promisify(execFile)('sh', ['-c', command], { env }).catch(() => {})
    try {
      return contactsIn(copy).length
    } catch {
      return 0
    }
  }
  await until(async () => (await copied()) === contactsIn(path).length)
  t.diagnostic(`acknowledged: ${ledger.acknowledged}`)

  await program.end('SIGKILL')
  logged.push(...logOf(program))
  assert.deepEqual(
    complaintsIn(logged).filter(({ msg }) => !String(msg).includes('plain HTTP')),
    [],
  )
  rmSync(machine, { recursive: true })

  const cwd = checkout(t)
  const DATABASE_URL = `sqlite:${join(cwd, 'data', 'waitlist.db')}`
  const { stdout } = await promisify(execFile)('sh', ['-ec', typed(restore!)], { cwd, env: { ...env, DATABASE_URL } })
  assert.match(stdout, /^replica\.db is the database now: /)
  assert.match(stdout, /^ok {6}what is stored: the store is intact/m)
  ledger.assertTrueOf(contactsIn(join(cwd, 'data', 'waitlist.db')))
})
