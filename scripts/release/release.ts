import { execFileSync, spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What is released: the clone in which a script runs. */
export const { name, version, repository } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly name: string
  readonly version: string
  readonly repository?: { readonly url: string }
}

/** `owner/name` on GitHub: where the workflow runs, or the remote `origin` of a clone. */
export function onGitHub(): string {
  const named = process.env.GITHUB_REPOSITORY
  if (named !== undefined) return named
  const [, found] = /github\.com[:/]([\w-]+\/[\w.-]+?)(?:\.git)?$/.exec(run('git', 'remote', 'get-url', 'origin')) ?? []
  if (found === undefined) throw new Error('The remote "origin" is no repository on GitHub.')
  return found
}

/** Where container images of a repository on GitHub (`owner/name`) are. */
export const imageOf = (repository: string): string => `ghcr.io/${repository.toLowerCase()}`

/** What package.json says of a repository on GitHub: npm compares it with where a package was made. */
export const addressOf = (repository: string): string => `git+https://github.com/${repository}.git`

/** Where the files of a release gather. */
export const folder = 'release'

/** The package. */
export const tarball = join(folder, `${name}-${version}.tgz`)

/** Of the environment, as the workflow sets it. */
export function given(variable: string): string {
  const value = process.env[variable]
  if (value === undefined || value === '')
    throw new Error(`${variable} is not set: .github/workflows/release.yml does it.`)
  return value
}

/** Runs a program to its end, for its output. Its errors are seen. */
export const run = (program: string, ...args: readonly string[]): string =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).trim()

/**
 * Asks for what may be there or not, such as an earlier, half-done run of this release.
 *
 * @returns undefined when the answer is that it is not there, which `missing` knows by what is said.
 * @throws when there is no answer.
 */
export function ask(missing: RegExp, program: string, ...args: readonly string[]): string | undefined {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8' })
  if (error !== undefined) throw error
  if (status === 0) return stdout.trim()
  if (missing.test(stderr)) return undefined
  throw new Error(`${program} ${args.join(' ')}: ${stderr}`)
}

/** Our image as a file names it. Until the first release it has no owner, so that nobody else can have published it. */
const IMAGE = /(?:ghcr\.io\/[\w./-]+|(?<=[ '"])waitlist):\d+\.\d+\.\d+/g
/** `waitlist-0.1.0.tgz`, `waitlist@0.1.0`. */
const FILE = /(?<=\bwaitlist[-@])\d+\.\d+\.\d+/g

/** The documents and files for deployment that name another version or image than these, as they should be. */
export function outdated(version: string, image: string): readonly { readonly path: string; readonly text: string }[] {
  return globSync(['README.md', 'compose.yaml', 'docs/**/*.md', 'deploy/*'])
    .sort()
    .flatMap(path => {
      const said = readFileSync(path, 'utf8')
      const text = said.replaceAll(IMAGE, `${image}:${version}`).replaceAll(FILE, version)
      return text === said ? [] : [{ path, text }]
    })
}
