import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fillDatabase, startDatabase } from './database.ts'
import { generator } from './load.ts'
import { measureBoth, type Round, warmUp } from './measure.ts'
import type { Plan } from './options.ts'
import { startService } from './processes.ts'
import { record } from './record.ts'
import { type Comparison, count, type Figure, waitFigure } from './report.ts'
import { engineGoals, fileSizeGoals, knownSignup, newSignup, openLimiter } from './scenarios.ts'

const FEW = 1_000
/** In each of the two engines that are compared. */
const MANY = 400_000
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

/** A new signup on SQLite, against one on PostgreSQL. Both lists are filled first, and grow with each round. */
export async function compareEngines(
  folder: string,
  { contacts, rounds, seconds, warmUp: warm, progress }: Plan,
): Promise<{ readonly comparison: Comparison; readonly figure: Figure }> {
  const many = Math.min(MANY, contacts)
  const file = join(folder, 'engines.db')
  const database = await startDatabase()
  try {
    const on = async (url: string, add: () => Promise<unknown> | unknown) => {
      progress(`engines: filling with ${count(many)} contacts`)
      const first = await startService(folder, { ...openLimiter, DATABASE_URL: url })
      await record(first.port, knownSignup)
      await first.stop()
      await add()
      return startService(folder, { ...openLimiter, DATABASE_URL: url })
    }
    const servers = {
      subject: await on(`sqlite:${file}`, () => fill(file, many)),
      baseline: await on(database.url, () => fillDatabase(database.url, many)),
    }
    const load = { request: newSignup, status: 200, connections: 64 }
    for (const server of Object.values(servers)) await warmUp(server, knownSignup, load, warm)
    const measured: Round[] = []
    for (let round = 1; round <= rounds; round++) {
      progress(`engines, round ${round} of ${rounds}`)
      measured.push(await measureBoth(servers, { ...load, seconds }, round % 2 === 0))
    }
    for (const server of Object.values(servers)) await server.stop()
    const name = `SQLite against PostgreSQL, new signup, ${count(many)} contacts in each`
    const { rate, p99 } = engineGoals
    return {
      comparison: { name, goals: { rate }, rounds: measured },
      figure: waitFigure(`${name}, p99`, measured, p99, 'PostgreSQL'),
    }
  } finally {
    await database.remove()
  }
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
