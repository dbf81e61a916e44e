/** Makes the package, the list of what an installation of it consists of (CycloneDX), and the notes of the release. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parts } from './changelog.ts'
import { folder, name, run, tarball, version } from './release.ts'

mkdirSync(folder, { recursive: true })
run('npm', 'pack', '--pack-destination', folder)
// The host breaks a line wherever the changelog does.
const notes = parts()
  .find(part => part.version === version)!
  .notes.replaceAll(/(?<=\S)\n *(?=[^\s#-])/g, ' ')
writeFileSync(join(folder, 'notes.md'), `${notes}\n`)

// In an empty folder: in the clone, `--omit=dev` would leave out whatever a development dependency needs too.
const cwd = mkdtempSync(join(tmpdir(), 'waitlist-release-'))
try {
  const npm = (...args: string[]) => execFileSync('npm', args, { cwd, encoding: 'utf8' })
  npm('init', '--yes')
  npm('install', '--ignore-scripts', '--no-audit', resolve(tarball))
  writeFileSync(join(folder, `${name}-${version}.cdx.json`), npm('sbom', '--sbom-format', 'cyclonedx'))
} finally {
  rmSync(cwd, { recursive: true, force: true })
}
