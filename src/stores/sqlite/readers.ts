import { readFileSync, statSync } from 'node:fs'

/** The bytes of the shared-memory file that readers lock (https://sqlite.org/walformat.html#wal_locks). */
const FIRST_READER = 123
const LAST_READER = 127

/**
 * The other processes that read a database at this moment, as `sqlite3 (pid 123)`. Only Linux tells; it does not tell of
 * those in other containers.
 */
export function readersOf(path: string): string[] {
  try {
    const { ino } = statSync(`${path}-shm`)
    const pids = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .map(line => /^\d+: POSIX +\S+ +READ (\d+) [^:]+:[^:]+:(\d+) (\d+) \d+$/.exec(line) ?? [])
      .filter(([, , inode, byte]) => Number(inode) === ino && +byte! >= FIRST_READER && +byte! <= LAST_READER)
      .map(([, pid]) => Number(pid))
    return [...new Set(pids)].filter(pid => pid !== process.pid).map(pid => `${commandOf(pid)} (pid ${pid})`)
  } catch {
    return []
  }
}

const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
