/** Writes the checksums of all files of the release, and signs them without a key of our own (cosign). */
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder, run } from './release.ts'

const sums = join(folder, 'SHA256SUMS')
const names = globSync('*.{tgz,tar.gz,cdx.json}', { cwd: folder }).sort()
// The package, its list and three executables.
if (names.length !== 5) throw new Error(`There should be five files: ${names.join(', ')}`)
const lines = names.map(
  name =>
    `${createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex')}  ${name}\n`,
)
writeFileSync(sums, lines.join(''))
run('cosign', 'sign-blob', '--yes', '--bundle', `${sums}.sigstore.json`, sums)
