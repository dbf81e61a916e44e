import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { generator } from './load.ts'
import { measureBoth, type Round } from './measure.ts'
import type { Plan } from './options.ts'
import { startService } from './processes.ts'
import { record } from './record.ts'
import { type Comparison, count } from './report.ts'
import { fileSizeGoals, knownSignup, newSignup, openLimiter } from './scenarios.ts'

const FEW = 1_000
/** Contacts in one statement. */
const CHUNK = 100_000

/**
 * A new signup with many contacts in the file, against one with few. Both services are restarted in each round, the one
 * with few on a fresh copy, since a run adds more contacts than it had. They warm up with a known address, which adds
 * none.
 */
export async function compareFileSizes(folder: string, plan: Plan): Promise<Comparison> {
  const { contacts, rounds, seconds, warmUp, progress } = plan
  const on = (file: string) => startService(folder, { ...openLimiter, DATABASE_URL: `sqlite:${file}` })
  const [small, large] = [join(folder, 'small.db'), join(folder, 'large.db')]
  for (const [file, size] of [[small, FEW] as const, [large, contacts] as const]) {
    progress(`filling a file with ${count(size)} contacts`)
    const service = await on(file)
    await record(service.port, knownSignup)
    await service.stop()
    fill(file, size)
  }

  const measured: Round[] = []
  for (let round = 1; round <= rounds; round++) {
    progress(`file sizes, round ${round} of ${rounds}`)
    const copy = join(folder, `small-${round}.db`)
    copyFileSync(small, copy)
    const servers = { subject: await on(large), baseline: await on(copy) }
    const load = { request: newSignup, status: 200, connections: 64, seconds }
    for (const { port } of Object.values(servers)) {
      if (warmUp > 0) await generator.run({ ...load, port, request: knownSignup, seconds: warmUp })
    }
    measured.push(await measureBoth(servers, load, round % 2 === 0))
    for (const server of Object.values(servers)) await server.stop()
    rmSync(copy)
  }
  const name = `new signup, ${count(contacts)} contacts against ${count(FEW)}`
  return { name, goals: fileSizeGoals, rounds: measured }
}

/**
 * Copies the one contact in the file as fast as SQLite can, without syncing. The addresses are random, like those of the
 * load, so the index on them is as scattered as that of a real list.
 */
export function fill(file: string, contacts: number): void {
  const database = new DatabaseSync(file)
  database.exec('pragma synchronous = off; pragma cache_size = -2000000; pragma wal_autocheckpoint = 100000')
  const made: Record<string, string> = {
    id: `printf('01900000-%04x-7%03x-8000-%012x', n >> 16, n & 4095, n)`,
    email: 'address',
    email_key: 'address',
  }
  const columns = (database.prepare('pragma table_info(contact)').all() as { name: string; pk: number }[])
    .filter(({ pk }) => pk === 0)
    .map(({ name }) => name)
  const insert = database.prepare(
    `with recursive row (n) as (select ? union all select n + 1 from row where n < ?),
       fresh as materialized (select n, lower(hex(randomblob(8))) || '@example.com' as address from row)
     insert into contact (${columns.join(', ')})
     select ${columns.map(name => made[name] ?? `one.${name}`).join(', ')}
     from fresh cross join (select * from contact limit 1) as one`,
  )
  for (let filled = 1; filled < contacts; filled += CHUNK) insert.run(filled, Math.min(filled + CHUNK, contacts) - 1)
  database.exec('pragma wal_checkpoint(truncate)')
  database.close()
}
