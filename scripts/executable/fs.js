/** `node:fs` for the sources in an executable: their own files are read from it. */
import { readFileSync as readFile, readdirSync as readFolder } from 'node:fs'

export * from 'node:fs'

/** Base64 by the path below the root of the project. scripts/executable.ts puts them there. */
const files = globalThis[Symbol.for('waitlist.embedded')]

/** The path of such a file or folder, or undefined. */
const pathOf = address => (address?.protocol === 'embedded:' ? address.pathname.slice(1) : undefined)

export function readFileSync(address, options) {
  const path = pathOf(address)
  if (path === undefined) return readFile(address, options)
  const bytes = Buffer.from(files[path], 'base64')
  const encoding = options?.encoding ?? options
  return encoding === undefined ? bytes : bytes.toString(encoding)
}

export function readdirSync(address, options) {
  const path = pathOf(address)
  if (path === undefined) return readFolder(address, options)
  return Object.keys(files)
    .filter(file => file.startsWith(path))
    .map(file => file.slice(path.length))
}
