/**
 * Whether a tag may be released: `node scripts/release/check.ts v0.1.0`. Says all that stands against it, and ends with 1.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { parts } from './changelog.ts'
import { addressOf, imageOf, onGitHub, outdated, repository, run, version } from './release.ts'
import { changedSince, madeBy, migrations } from './schema.ts'

/** Who may sign a tag (ssh-keygen(1), ALLOWED SIGNERS). */
const SIGNERS = '.github/allowed_signers'

const tag = process.argv[2] ?? ''
const git = (...args: string[]) => run('git', ...args)
const succeeds = (...args: string[]) => spawnSync('git', args).status === 0

function* problems(): Generator<string> {
  if (tag !== `v${version}`) yield `the tag is "${tag}", but package.json says ${version}: it should be v${version}`

  // npm shows where a package was made, and refuses one that names another place.
  const here = onGitHub()
  if (repository?.url !== addressOf(here)) yield `package.json says that its repository is ${repository?.url}`
  for (const { path } of outdated(version, imageOf(here))) yield `${path} names another version or image`

  const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
  for (const said of new Set<string>([lock.version, lock.packages[''].version])) {
    if (said !== version) yield `package-lock.json says ${said}`
  }
  const [newest] = parts()
  if (newest?.version !== version) yield `CHANGELOG.md begins with ${newest?.version}`
  else if (newest.date === 'unreleased') yield 'CHANGELOG.md says "unreleased" where the date should be'

  const made = madeBy(version)
  if (made === undefined) yield `test/fixtures/released has no ${version}: node scripts/release/databases.ts`
  else if (changedSince(made).length > 0 || Object.keys(migrations()).length > Object.keys(made.migrations).length) {
    yield `the schema changed since the databases of ${version} were made: node scripts/release/databases.ts`
  }

  if (!succeeds('rev-parse', '--verify', '--quiet', `refs/tags/${tag}`)) {
    yield 'there is no such tag'
    return
  }
  // A signed tag under another name is still signed.
  const named = git('for-each-ref', '--format=%(objecttype) %(tag)', `refs/tags/${tag}`)
  if (named !== `tag ${tag}`) yield `the tag is no annotated tag of that name: git tag -s ${tag}`
  else if (!succeeds('-c', `gpg.ssh.allowedSignersFile=${SIGNERS}`, 'verify-tag', tag)) {
    yield `the tag is not signed by anybody whom ${SIGNERS} names`
  }
  if (git('rev-parse', `${tag}^{commit}`) !== git('rev-parse', 'HEAD')) yield 'the tag is of another commit'
  if (!succeeds('merge-base', '--is-ancestor', 'HEAD', 'origin/main')) yield 'the commit is not on main'
  const tags = git('tag', '--list', 'v*', '--sort=version:refname')
    .split('\n')
    .filter(other => /^v\d+\.\d+\.\d+$/.test(other))
  const later = tags.slice(tags.indexOf(tag) + 1)
  if (later.length > 0) yield `there is a later version: ${later.join(', ')}`
}

const found = [...problems()]
for (const problem of found) console.error(problem)
if (found.length > 0) process.exitCode = 1
else console.log(`${tag} may be released.`)
