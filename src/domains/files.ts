import { isUtf8 } from 'node:buffer'
import { unwatchFile, watchFile } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { type Log, OperatorError } from '../waitlist/ports/log.ts'
import type { DomainFiles } from './list.ts'
import { type DomainList, readDomains } from './list.ts'

export interface Domains {
  /** `email`: that of a signup. */
  accepts(email: string): boolean
  close(): void
}

/** Milliseconds. Files are polled, since notifications miss changed symbolic links and replaced files. */
const LOOK_EVERY = 1_000
/** Looks until a changed file is read: it may be written in several steps, so another look must find it as it was. */
const SETTLED = 2
/** Bytes of a file: three million domains. */
const LARGEST = 64 * 1024 * 1024

/**
 * Reads the files, and again when they change. A file that cannot be used then changes nothing, and the log says which of
 * its lines is wrong. The log also warns of lists that block nothing, or everybody.
 *
 * @throws {OperatorError} when one cannot be used at the start.
 */
export async function openDomains(
  { blocked, allowed }: DomainFiles,
  log: Log,
  lookEvery = LOOK_EVERY,
): Promise<Domains> {
  const closings: (() => void)[] = []
  // Nothing is said before both are read.
  let warn = () => {}
  const open = async (setting: string, path: string) => {
    const { list, close } = await watched(setting, path, log, () => warn(), lookEvery)
    closings.push(close)
    return list
  }
  const close = () => {
    for (const each of closings) each()
  }
  try {
    const blockedNow = await open('BLOCKED_DOMAINS_FILE', blocked)
    const allowedNow = allowed === null ? () => null : await open('ALLOWED_DOMAINS_FILE', allowed)
    warn = () => {
      const sentence = warningFor(blockedNow(), allowedNow())
      if (sentence !== null) log.warn({}, sentence)
    }
    warn()
    return {
      accepts(email) {
        const domain = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
        return !blockedNow().has(domain) || allowedNow()?.has(domain) === true
      },
      close,
    }
  } catch (error) {
    close()
    throw error
  }
}

/** A list, as its file was when it could last be used. */
async function watched(setting: string, path: string, log: Log, reloaded: () => void, lookEvery: number) {
  const first = firstDomains(setting, path)
  let settling: NodeJS.Timeout | undefined
  let reading: Promise<unknown> = first.catch(() => {})
  let closed = false
  const reload = async () => {
    try {
      const newer = await readDomainFile(path)
      if (closed) return
      list = newer
      log.info({ setting, domains: list.size }, 'the list of email domains was read again')
      reloaded()
    } catch (error) {
      if (!closed) {
        log.warn(
          { setting, why: (error as Error).message },
          'the new list of email domains cannot be used; the old one stays',
        )
      }
    }
  }
  const changed = () => {
    clearTimeout(settling)
    // One after the other, so that the newest is the last.
    settling = setTimeout(() => {
      reading = reading.then(reload)
    }, SETTLED * lookEvery)
  }
  const close = () => {
    closed = true
    clearTimeout(settling)
    unwatchFile(path, changed)
  }
  // From now on, so that a change while it is read for the first time is seen too.
  watchFile(path, { interval: lookEvery, persistent: false }, changed)
  let list = await first.catch(error => {
    close()
    throw error
  })
  return { list: () => list, close }
}

/** What hardly anybody wants of these lists, in a sentence; null: they are fine. `allowed` null: there is no such file. */
export function warningFor(blocked: DomainList, allowed: DomainList | null): string | null {
  const allows = allowed !== null && allowed.size > 0
  if (blocked.size === 0) return 'BLOCKED_DOMAINS_FILE has no domains: nothing is blocked.'
  if (blocked.hasEvery && !allows) return 'BLOCKED_DOMAINS_FILE blocks every domain: nobody can sign up.'
  return allowed === null || allows ? null : 'ALLOWED_DOMAINS_FILE has no domains: there are no exceptions.'
}

/** @throws {OperatorError} that names the setting. */
export async function firstDomains(setting: string, path: string): Promise<DomainList> {
  try {
    return await readDomainFile(path)
  } catch (error) {
    throw new OperatorError(`${setting} cannot be used: ${(error as Error).message}`)
  }
}

/** @throws {Error} that names the file, when it cannot be read, is too large, or has a line that is no domain. */
async function readDomainFile(path: string): Promise<DomainList> {
  const file = await stat(path).catch(error => {
    throw error.code === 'ENOENT' ? new Error(`there is no file ${path}`) : error
  })
  if (file.isDirectory()) throw new Error(`${path} is a folder`)
  // Anything else, such as a pipe, may have no end.
  if (!file.isFile()) throw new Error(`${path} is not a file`)
  if (file.size > LARGEST) throw new Error(`${path} has more than ${LARGEST} bytes`)
  const bytes = await readFile(path)
  if (!isUtf8(bytes)) throw new Error(`${path} is not UTF-8 text`)
  const list = await readDomains(bytes.toString())
  if ('line' in list) throw new Error(`${path}, line ${list.line}: ${list.why}`)
  return list
}
