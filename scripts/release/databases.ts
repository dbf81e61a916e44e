/**
 * Makes the databases of this version that every later one must open: test/fixtures/released/<version>/. The package itself
 * makes them, packed and installed as a user has it: contacts in every state, deliveries in every state, an erased person.
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { withDatabase } from '../../test/harness/database.ts'
import { temporaryFolder } from '../../test/harness/folder.ts'
import { packed } from '../../test/harness/packed.ts'
import { startPostgres, unsynced } from '../../test/harness/postgres.ts'
import { endedAt, rowsIn } from '../../test/harness/postgres-database.ts'
import { runCommand, runProgram, until } from '../../test/harness/program.ts'
import { never, say, startReceiver } from '../../test/harness/receiver.ts'
import { isReleased } from './changelog.ts'
import { kept, migrations } from './schema.ts'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
if (isReleased(version)) throw new Error(`${version} is released: its databases stay as they are.`)

const ends: (() => unknown)[] = []
const t = { after: (end: () => unknown) => void ends.push(end) }
/** As a test takes it. */
type Test = Parameters<typeof runProgram>[0]

type Read = (text: string) => Promise<readonly object[]>

/** What a service has lived through: it was killed while the receiver of the last event did not answer. */
async function live(entry: string, database: string, read: Read): Promise<Record<string, string>> {
  const told: Record<string, string> = {}
  const receiver = await startReceiver(t as Test, ({ json, headers }) => {
    const { email } = json.data as { email: string }
    told[email] = headers['webhook-id']!
    if (email.startsWith('dot')) return never
    return say({ status: email.startsWith('bob') ? 400 : email.startsWith('cyd') ? 503 : 200 })
  })
  const cwd = temporaryFolder(t as Test)
  const own = { DATABASE_URL: database, SHUTDOWN_DELAY: '0' }
  const run = async (...args: string[]) => {
    const { code, stderr } = await runCommand(t as Test, cwd, args, own, undefined, entry)
    if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  }
  const signUp = (baseUrl: string, name: string, email: string, query = '') =>
    fetch(`${baseUrl}/api/waitlist${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name, email }),
    })

  const hook = { WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: 'whsec_Zm9yLXRoZS1yZWFkbWUtYW5kLW5vdGhpbmctZWxzZQ==' }
  const gate = { TRACK_SOURCES: 'true', HOLD_ABOVE: '5' }
  const open = await runProgram(t as Test, { ...own, ...hook, ...gate }, { cwd, entry })
  await signUp(open.baseUrl, 'Ada Lovelace', 'ada@example.com', '?utm_source=hn&ref=grace')
  for (const name of ['Bob', 'Cyd', 'Gus', 'Dót Łukasz 李', 'Eve', 'Fay']) {
    await signUp(
      open.baseUrl,
      name,
      `${name === 'Eve' ? 'EVE' : name.slice(0, 3).toLowerCase().replace('ó', 'o')}@example.com`,
    )
  }
  await run('remove', '--yes', 'gus@example.com')
  await run('release', 'eve@example.com')
  writeFileSync(join(cwd, 'others.csv'), 'email,name\nhal@example.com,Hal\n')
  await run('import', 'others.csv')
  await run('invite', '--yes', 'hal@example.com')
  const settled = 'select 1 from delivery where why is not null or settled_at is not null'
  await until(async () => Object.keys(told).length === 5 && (await read(settled)).length === 3)
  await open.end('SIGKILL')

  // Nobody listens there.
  const provider = {
    PROVIDER: 'listmonk',
    LISTMONK_BASE_URL: 'http://127.0.0.1:1',
    LISTMONK_USER: 'api',
    LISTMONK_TOKEN: 'secret',
    LISTMONK_LIST_IDS: '1',
  }
  const closed = await runProgram(t as Test, { ...own, ...provider }, { cwd, entry })
  await signUp(closed.baseUrl, 'Ida', 'ida@example.com')
  await closed.end('SIGTERM')

  const mails = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'hello@example.com', MAIL_WELCOME: 'false' }
  const confirms = { CONFIRM: 'mail', BASE_URL: 'https://waitlist.example.com', ...mails }
  const asking = await runProgram(t as Test, { ...own, ...confirms }, { cwd, entry })
  const ready = asking
    .stdout()
    .split('\n')
    .find(line => line.includes('"waitlist is ready"'))!
  await signUp((JSON.parse(ready) as { listening: string }).listening, 'Joe', 'joe@example.com')
  await asking.end('SIGTERM')
  return told
}

/** All of a database as SQL: PostgreSQL's own dump does not come with npm. */
async function dump(url: string, folder: string): Promise<string> {
  const made = Object.keys(migrations())
    .filter(path => path.startsWith('postgres/'))
    .map(path => readFileSync(join(folder, 'dist', 'stores', path.replace('/', '/migrations/')), 'utf8'))
  const columns = await rowsIn<{ table: string; column: string; identity: boolean }>(
    url,
    `select table_name as "table", min(column_name) filter (where is_identity = 'YES') as "column"
     from information_schema.columns where table_schema = 'public' group by table_name order by table_name`,
  )
  const filled: string[] = []
  for (const { table, column } of columns) {
    const rows = await rowsIn<{ row: string }>(
      url,
      `select row_to_json(${table})::text as row from ${table} order by 1`,
    )
    const json = rows.map(({ row }) => row).join(',\n')
    filled.push(
      `insert into ${table} overriding system value select * from json_populate_recordset(null::${table}, $$[\n${json}\n]$$);`,
    )
    if (column !== null) {
      const [{ last } = { last: 1 }] = await rowsIn<{ last: string }>(
        url,
        `select last_value as last from pg_sequences where format('%I', sequencename) = split_part(pg_get_serial_sequence('${table}', '${column}'), '.', 2)`,
      )
      if (last !== null) filled.push(`select setval(pg_get_serial_sequence('${table}', '${column}'), ${last});`)
    }
  }
  return [
    ...made,
    'create table waitlist_schema (version integer not null);',
    '-- Rows come in the order of the tables’ names.\nset session_replication_role = replica;',
    ...filled,
    'reset session_replication_role;\n',
  ].join('\n')
}

try {
  const { tarball } = packed(t as Test)
  const place = temporaryFolder(t as Test)
  execFileSync('npm', ['install', '--silent', '--prefer-offline', '--prefix', place, tarball], { stdio: 'inherit' })
  const folder = join(place, 'node_modules', 'waitlist')
  const entry = join(folder, 'bin', 'waitlist.js')
  const target = join(kept, version)
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })

  const path = join(temporaryFolder(t as Test), 'waitlist.db')
  const told = await live(entry, `sqlite:${path}`, async text => withDatabase(path, file => file.prepare(text).all()))
  // All of it in one file.
  withDatabase(path, file => file.exec('pragma wal_checkpoint(truncate); vacuum'))
  writeFileSync(join(target, 'sqlite.db.gz'), gzipSync(readFileSync(path), { level: 9 }))

  const server = await startPostgres({ settings: unsynced })
  ends.push(() => server.remove())
  const url = await server.database()
  const toldToo = await live(entry, url, text => rowsIn(url, text))
  await endedAt(url)
  writeFileSync(join(target, 'postgres.sql'), await dump(url, folder))

  const made = { migrations: migrations(), told: { sqlite: told, postgres: toldToo } }
  writeFileSync(join(target, 'made.json'), `${JSON.stringify(made, null, 2)}\n`)
  console.log(`test/fixtures/released/${version} has the databases of this version: commit it.`)
} finally {
  for (const end of ends.reverse()) await end()
}
