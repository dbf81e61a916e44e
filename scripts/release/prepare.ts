/**
 * Makes this clone ready for a version: `node scripts/release/prepare.ts 0.1.0`. Writes the version, and the repository that
 * `origin` is, wherever they are said; today's date into CHANGELOG.md; and the databases that later versions must open. Commits
 * nothing.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { isReleased } from './changelog.ts'
import { addressOf, imageOf, onGitHub, outdated, run } from './release.ts'

const version = process.argv[2] ?? ''
if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error('Which version? Such as: node scripts/release/prepare.ts 0.1.0')
if (isReleased(version)) throw new Error(`CHANGELOG.md has a date for ${version}: it is prepared already.`)
const unreleased = `## [${version}] - unreleased`
const changes = readFileSync('CHANGELOG.md', 'utf8')
if (!changes.includes(unreleased)) throw new Error(`CHANGELOG.md has no "${unreleased}".`)
const repository = onGitHub()

run('npm', 'version', version, '--no-git-tag-version', '--allow-same-version')
run('npm', 'pkg', 'set', 'repository.type=git', `repository.url=${addressOf(repository)}`)
for (const { path, text } of outdated(version, imageOf(repository))) writeFileSync(path, text)
// Its package makes them, so the version comes first; and the date last, from which on they stay as they are.
execFileSync(process.execPath, ['scripts/release/databases.ts'], { stdio: 'inherit' })
writeFileSync('CHANGELOG.md', changes.replace(unreleased, `## [${version}] - ${new Date().toISOString().slice(0, 10)}`))
console.log(`Ready: read "git diff", then commit it to main and tag it v${version}.`)
