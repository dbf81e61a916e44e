import { closeSync, openSync, readSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { allVendors, prefixOf, vendorNames, vendorOf } from '../providers/list.ts'
import { OperatorError } from '../waitlist/ports/log.ts'
import type { Environment } from './kinds.ts'
import { settings } from './settings.ts'

/** Where the settings of this process come from. */
export interface GivenSettings {
  readonly env: Environment
  /** The file `.env` that was read (absolute); null: there is none. */
  readonly file: string | null
  /** One sentence for each name that looks like a setting and is none. */
  readonly misnamed: readonly string[]
}

/**
 * The process's environment, which takes precedence over the file `.env` in the working directory.
 *
 * @throws {OperatorError} when that file cannot be read.
 */
export async function environment(): Promise<GivenSettings> {
  const file = readEnvFile()
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''))
  const env = { ...file?.values, ...given }
  const inFile = Object.keys(file?.values ?? {})
  const unassigned = file?.unassigned ?? []

  const own = Object.keys(settings)
  const chosen = vendorNames.find(vendor => vendor === env.PROVIDER?.trim())
  const useful = chosen === undefined ? own : [...own, ...Object.keys((await vendorOf(chosen)).settings)]
  const prefix = chosen && prefixOf(chosen)
  const mayBeOfAnother = (name: string) => !useful.includes(name) && !(prefix && name.startsWith(prefix))
  // Everything in the file is for this program; in the environment, what begins like a setting of a vendor.
  const others = Object.keys(given).filter(name => vendorNames.some(vendor => name.startsWith(prefixOf(vendor))))
  const known = [...inFile, ...unassigned, ...others].some(mayBeOfAnother)
    ? [...own, ...Object.values(await allVendors()).flatMap(vendor => Object.keys(vendor.settings))]
    : useful

  const valueless = unassigned
    .filter(name => known.includes(name))
    .map(name => `.env has a line with ${name} that sets nothing; write ${name}=<value>`)
  const names = { inFile, inEnvironment: given, known, useful, prefix }
  return { env, file: file?.path ?? null, misnamed: [...misnamed(names), ...valueless] }
}

/**
 * Those of a command's options that npm has kept for itself, since no `--` came before them: `npm run waitlist import
 * --dry-run` would import. `--yes` may be meant for npm, and without it we only ask.
 */
export function keptByNpm(options: readonly string[]): readonly string[] {
  if (process.env.npm_lifecycle_event !== 'waitlist') return []
  return options.filter(option => {
    const value = process.env[`npm_config_${option.replace(/^--/, '').replaceAll('-', '_')}`]
    return option !== '--yes' && ![undefined, '', 'false'].includes(value)
  })
}

interface EnvFile {
  /** Absolute. */
  readonly path: string
  readonly values: Environment
  /** Names at the beginning of lines that are no assignments, such as `PORT: 8080`. */
  readonly unassigned: readonly string[]
}

/** Bytes. What has more, such as a device without an end, is not a file of settings. */
const MAX_BYTES = 64 * 1024

const UTF_16: Readonly<Record<string, string>> = { fffe: 'utf-16le', feff: 'utf-16be' }

/**
 * The file `.env` in the working directory; null if there is none. It is UTF-8, or UTF-16 if its first bytes say so.
 *
 * @throws {OperatorError} when it cannot be read, has more than 64 KiB, or is not text.
 */
function readEnvFile(): EnvFile | null {
  let bytes: Buffer
  try {
    bytes = bytesOf('.env')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    const why = { EISDIR: 'it is a folder', EACCES: 'this user has no right to' }[String(code)] ?? message
    throw new OperatorError(`The file ${resolve('.env')} cannot be read: ${why}`)
  }
  const path = resolve('.env')
  if (bytes.length > MAX_BYTES) throw new OperatorError(`The file ${path} is larger than 64 KiB.`)
  const text = decoded(bytes)
  if (text === undefined) throw new OperatorError(`The file ${path} is not UTF-8 text. Save it as UTF-8.`)
  const values = parseEnv(text)
  const unassigned = [...text.matchAll(/^[ \t]*(?:export[ \t]+)?([A-Z][A-Z0-9_]+)(?:[ \t]*:|[ \t]+[^\s=])/gm)]
    .map(([, name]) => name!)
    .filter(name => !(name in values))
  return { path, values, unassigned }
}

/** One byte more than is allowed at most. Password managers offer the file as a pipe, which has no size. */
function bytesOf(path: string): Buffer {
  const bytes = Buffer.alloc(MAX_BYTES + 1)
  const file = openSync(path, 'r')
  try {
    let length = 0
    for (let read = 1; read > 0 && length < bytes.length; length += read)
      read = readSync(file, bytes, { offset: length })
    return bytes.subarray(0, length)
  } finally {
    closeSync(file)
  }
}

function decoded(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder(UTF_16[bytes.toString('hex', 0, 2)] ?? 'utf-8', { fatal: true }).decode(bytes)
    // UTF-16 without its mark looks like this.
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

/** Variables whose names are nearly those of settings. */

interface Named {
  /** Names in the file `.env`, which is for this program alone. */
  readonly inFile: readonly string[]
  /** Variables of the process: most are for other programs. */
  readonly inEnvironment: Readonly<Record<string, string | undefined>>
  /** Settings of this program. */
  readonly known: readonly string[]
  /** Those of them that would do something here. */
  readonly useful: readonly string[]
  /** How the names of the chosen provider's settings begin: it has a sentence of its own for what else begins so. */
  readonly prefix?: string | undefined
}

/** Shorter names of other programs differ by a letter: PORT and POST, HOST and HOME. */
const DISTINCTIVE = 8

/** Of other programs: jobs get the first from crontabs, and many write their log to the second. */
const OTHERS = ['MAILFROM', 'LOG_FILE']

/** One sentence for each name that is no setting, with the one that was probably meant. */
export function misnamed({ inFile, inEnvironment, known, useful, prefix }: Named): readonly string[] {
  const sentences: string[] = []
  const isSettled = (name: string) => known.includes(name) || (prefix !== undefined && name.startsWith(prefix))
  for (const name of inFile.filter(each => !isSettled(each))) {
    const meant = nearest(name, known, ({ length }) => (length < DISTINCTIVE ? 1 : 2))
    sentences.push(
      `.env has ${name}, which is not a setting of Waitlist${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    )
  }
  const candidates = useful.filter(each => each.length >= DISTINCTIVE && !inEnvironment[each] && !inFile.includes(each))
  for (const [name, value] of Object.entries(inEnvironment)) {
    if (isSettled(name) || inFile.includes(name) || OTHERS.includes(name)) continue
    // Docker and Kubernetes tell each container where its neighbours are.
    if (!value || /^(?:tcp|udp|sctp):\/\//.test(value)) continue
    const meant = nearest(name, candidates, ({ length }) => (length < 2 * DISTINCTIVE ? 1 : 2))
    if (meant !== undefined) sentences.push(`${name} is not a setting of Waitlist; did you mean ${meant}?`)
  }
  return sentences
}

/** The candidate that is the same but for case and underscores, or the nearest one within so many typing errors. */
function nearest(
  name: string,
  candidates: readonly string[],
  maxDistance: (candidate: string) => number,
): string | undefined {
  const folded = (text: string) => text.replaceAll(/[_-]/g, '').toUpperCase()
  let best: string | undefined
  let smallest = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > 3) continue
    const distance = folded(candidate) === folded(name) ? 0 : editDistance(name, candidate)
    if (distance >= smallest || distance > maxDistance(candidate)) continue
    smallest = distance
    best = candidate
  }
  return best
}

/** Letters inserted, left out, replaced, or swapped with their neighbour (optimal string alignment distance). */
function editDistance(from: string, to: string): number {
  let before: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, j) => j)
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1]
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      row[j] = Math.min(
        last[j]! + 1,
        row[j - 1]! + 1,
        last[j - 1]! + (same ? 0 : 1),
        swapped ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = last
    last = row
  }
  return last[to.length]!
}
