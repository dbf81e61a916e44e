import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { prefixOf, vendorNames, vendorOf } from '../providers/list.ts'
import type { Environment } from './kinds.ts'
import { OperatorError } from './operator.ts'
import { settings } from './settings.ts'

/** Where the settings of this process come from. */
export interface GivenSettings {
  readonly env: Environment
  /** The file `.env` that was read (absolute); null: there is none. */
  readonly file: string | null
  /** At most one sentence: the names that look like settings and are none. */
  readonly misnamed: readonly string[]
}

/**
 * The process's environment, which takes precedence over the file `.env` in the working directory. A variable of spaces
 * counts as unset.
 *
 * @throws {OperatorError} when that file cannot be read.
 */
export async function environment(given: Environment): Promise<GivenSettings> {
  const file = readEnvFile()
  const set = Object.entries(given).filter(([, value]) => value?.trim())
  const env = { ...file?.values, ...Object.fromEntries(set) }
  const vendor = vendorNames.find(name => name === env.PROVIDER?.trim())
  const known = [...Object.keys(settings), ...(vendor ? Object.keys((await vendorOf(vendor)).settings) : [])]
  const prefixes = [...known.flatMap(name => name.match(/^[A-Z]+_/) ?? []), ...vendorNames.map(prefixOf)]
  const unknown = Object.keys(env).filter(name => !known.includes(name) && prefixes.some(each => name.startsWith(each)))
  const misnamed =
    unknown.length === 0 ? [] : [`Misspelt, or of another PROVIDER, and without effect: ${unknown.join(', ')}`]
  return { env, file: file?.path ?? null, misnamed }
}

/** @throws {OperatorError} when the file is there and cannot be read. */
function readEnvFile(): { readonly path: string; readonly values: Environment } | null {
  const path = resolve('.env')
  try {
    return { path, values: parseEnv(readFileSync(path, 'utf8').replace(/^\uFEFF/, '')) }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new OperatorError(`The file ${path} cannot be read: ${message}`)
  }
}
