/** Publishes the package. If this version is published already, it must be the same package. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { ask, name, run, tarball, version } from './release.ts'

const integrity = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
// Nothing is said of a version that is not there, where there are others.
const there = ask(/\bE404\b/, 'npm', 'view', `${name}@${version}`, 'dist.integrity')
if (there === undefined || there === '') run('npm', 'publish', resolve(tarball))
else if (there === integrity) console.log(`${name}@${version} is published already.`)
else throw new Error(`${name}@${version} is published already, and is another package: ${there}, not ${integrity}`)
