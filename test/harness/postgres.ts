import { execFile, execFileSync, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { after } from 'node:test'
import { promisify } from 'node:util'
import pg from 'pg'
import { endedWithUs } from './ended-with-us.ts'
import { freePort } from './port.ts'
import { identity, initialize, own, prepared, programsIn } from './postgres-prepared.ts'
import { until } from './program.ts'

/** What a server gives to a test. Its role `owner` needs no password, every other one does. */
export interface PostgresDatabases {
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
  /** Where there was this server, another one is with a copy of its data. To be called while it is stopped. */
  failOver(): void
  /** Takes connections and answers nothing, until it is told to go on. */
  pause(): void
  goOn(): void
  /** Stops it and removes all of it. */
  remove(): Promise<void>
  /** Lets this process end, and ends with it, also where it is killed. */
  unref(): void
}

export interface PostgresServerOptions {
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

/** The port of the server that all files of a run share. */
const SHARED = 'WAITLIST_TEST_POSTGRES_PORT'
const startShared = () => startPostgres({ settings: { ...unsynced, max_connections: '300' } })

/** Starts it for all processes that this one starts, and until it ends. */
export async function sharePostgres(): Promise<void> {
  const server = await startShared()
  server.unref()
  process.env[SHARED] = String(server.port)
}

/**
 * The server for tests that neither stop it nor set anything for all of it. The databases of this file are dropped when it
 * has run. Without `npm test`'s setup the file has a server of its own.
 */
export const sharedPostgres = (): Promise<PostgresDatabases> => (shared ??= openShared())

/** One for a file, since its databases are counted. */
let shared: Promise<PostgresDatabases> | undefined

async function openShared(): Promise<PostgresDatabases> {
  const port = process.env[SHARED]
  if (port === undefined) {
    const server = await startShared()
    after(() => server.remove())
    return server
  }
  const { made, ...databases } = databasesAt(Number(port), ' strategy file_copy')
  after(() =>
    databases.run(urlAt(databases.port, 'postgres'), ...made.map(name => `drop database ${name} with (force)`)),
  )
  return databases
}

const urlAt = (port: number, database: string) => `postgres://owner@127.0.0.1:${port}/${database}`

async function run(url: string, ...statements: readonly string[]): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

function databasesAt(port: number, strategy: string) {
  const made: string[] = []
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

const ACCESS = `
host all owner 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`

/** Starts a server on a free port with a data folder of its own; the caller removes it. */
export async function startPostgres({
  settings = {},
  programs: at,
  tls,
}: PostgresServerOptions = {}): Promise<PostgresServer> {
  let end = () => {}
  const { folder, remove } = endedWithUs('postgres', () => end())
  own(folder)
  let data = join(folder, 'data')
  let postgres: string
  if (at === undefined) {
    const made = await prepared()
    postgres = made.postgres
    await promisify(execFile)('cp', ['-a', made.data, data])
  } else {
    const programs = programsIn(at)
    postgres = programs.postgres
    await initialize(programs.initdb, data)
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
  writeFileSync(
    join(data, 'postgresql.auto.conf'),
    Object.entries(all)
      .map(([name, value]) => `${name} = '${value}'\n`)
      .join(''),
  )

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
    const processes = [first, ...childrenOf(first)]
    for (const pid of processes) {
      try {
        process.kill(pid, signal)
      } catch {
        // It ended meanwhile.
      }
    }
    return processes
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
        await until(() => !processes.some(isAlive))
      } else running.child.kill(mode === 'fast' ? 'SIGINT' : 'SIGQUIT')
      await running.exited
    },
    async start() {
      running = spawned()
      await running.ready
    },
    failOver() {
      const copy = `${data}-copy`
      execFileSync('cp', ['-a', data, copy])
      rmSync(data, { recursive: true })
      data = copy
    },
    pause: () => void signalAll('SIGSTOP'),
    goOn: () => void signalAll('SIGCONT'),
    async remove() {
      end()
      await running.exited
      remove()
    },
    unref() {
      const { pid, stderr } = running.child
      const ending = 'cat; kill -QUIT $0; while kill -0 $0; do sleep 0.1; done; rm -rf $1'
      const watch = spawn('sh', ['-c', ending, String(pid), folder], {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      })
      for (const each of [running.child, watch, stderr as Socket, watch.stdin as Socket]) each.unref()
    },
  }
}

export const noInstalledPostgres = 'no PostgreSQL is installed beside that of npm; .ci/run installs one'

/** The programs of this machine's own PostgreSQL, the newest one, where Debian and its kin put them. */
export function installedPostgres(): string | undefined {
  const versions = existsSync(DEBIAN)
    ? readdirSync(DEBIAN).filter(version => existsSync(programsIn(bin(version)).initdb))
    : []
  const newest = versions.toSorted((a, b) => Number(b) - Number(a))[0]
  return newest === undefined ? undefined : bin(newest)
}

const DEBIAN = '/usr/lib/postgresql'
const bin = (version: string): string => join(DEBIAN, version, 'bin')

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Not every small system has `ps`, and not every system has /proc. */
function childrenOf(parent: number): number[] {
  if (existsSync(`/proc/${parent}/task/${parent}/children`)) {
    const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8')
    return children.trim().split(' ').filter(Boolean).map(Number)
  }
  const list = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const processes = list.split('\n').map(line => line.trim().split(/\s+/).map(Number))
  return processes.flatMap(([pid, of]) => (of === parent ? [pid!] : []))
}
