import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** READONLY and CANTOPEN of SQLite. */
const REFUSED = [8, 14]

/** Whether rights may be the reason. */
const isRefusal = (error: unknown): boolean => {
  const { code = '', errcode = 0 } = error as { code?: string; errcode?: number }
  return ['EACCES', 'EPERM', 'EROFS'].includes(code) || REFUSED.includes(errcode & 0xff)
}

/** The reason why a database file cannot be used: the right that is lacking, or what the error says, with what to do. */
export const reasonOf = (path: string, error: unknown): string =>
  (isRefusal(error) ? lackingRight(path) : undefined) ?? `${(error as Error).message}${whereToLook(error)}`

/** READONLY and IOERR of SQLite. */
const BY_DISK = [8, 10]

/** What to do about an error that the disk is to blame for, if no right is lacking; empty: it is another one. */
export const whereToLook = (error: unknown): string =>
  BY_DISK.includes(((error as { errcode?: number }).errcode ?? 0) & 0xff)
    ? ". The kernel's log (dmesg) says what is wrong with the disk: see to it before the next start"
    : ''

/** What this user may not do with a database file, there or not, or in its folder, with what to do; undefined: nothing. */
export function lackingRight(path: string): string | undefined {
  const file = existsSync(path) ? realpathSync(path) : resolve(path)
  let folder = dirname(file)
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder)
  const files = ['', '-wal', '-shm', '-lock'].map(ending => file + ending).filter(each => existsSync(each))
  for (const place of [folder, ...files]) {
    try {
      accessSync(place, constants.R_OK | constants.W_OK | (place === folder ? constants.X_OK : 0))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EROFS') {
        return `${place} is on a file system that is read-only. Set DATABASE_URL to a place that can be written.`
      }
      const what = place === folder ? 'write in the folder' : 'write the file'
      return `${userHere()} may not ${what} ${place}${ownerOf(place)}. Run it as that user, or change the owner.`
    }
  }
  return undefined
}

const userHere = (): string => `this user${process.getuid === undefined ? '' : ` (uid ${process.getuid()})`}`

function ownerOf(place: string): string {
  const uid = statSync(place, { throwIfNoEntry: false })?.uid
  return process.getuid === undefined || uid === undefined ? '' : `, which belongs to uid ${uid}`
}
