/**
 * The image: `build` makes that of this machine's architecture and pushes it without a tag; `publish` puts those of both
 * together, signs that, and then gives it the tags of the version. A version that has its tag keeps its image, which must be
 * signed by this workflow.
 */
import { execFileSync } from 'node:child_process'
import { appendFileSync, globSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ask, folder, given, imageOf, run, version } from './release.ts'

const repository = given('GITHUB_REPOSITORY')
const image = imageOf(repository)
execFileSync('docker', ['login', image.split('/')[0]!, '--username', given('GITHUB_ACTOR'), '--password-stdin'], {
  input: given('GITHUB_TOKEN'),
  stdio: ['pipe', 'inherit', 'inherit'],
})

const server = given('GITHUB_SERVER_URL')
const commit = given('GITHUB_SHA')

function build(): void {
  mkdirSync(folder, { recursive: true })
  // Docker's own builder can neither push without a tag nor say what it did.
  run('docker', 'buildx', 'create', '--name', 'release', '--driver', 'docker-container')
  const labels = { source: `${server}/${repository}`, revision: commit, version }
  run(
    'docker',
    ...['buildx', 'build', '--builder', 'release', '--sbom=true', '--provenance=mode=max'],
    ...Object.entries(labels).map(([label, value]) => `--label=org.opencontainers.image.${label}=${value}`),
    `--output=type=image,name=${image},push-by-digest=true,name-canonical=true,push=true`,
    `--metadata-file=${join(folder, `image-${process.arch}.json`)}`,
    '.',
  )
}

const tag = (digest: readonly string[], ...tags: readonly string[]) =>
  run('docker', 'buildx', 'imagetools', 'create', ...tags.flatMap(tag => ['--tag', tag]), ...digest)

/** Undefined: there is no such tag. */
const digestOf = (tagged: string): string | undefined =>
  ask(/not found/i, 'docker', 'buildx', 'imagetools', 'inspect', tagged, '--format', '{{.Manifest.Digest}}')

function put(): string {
  const made = globSync(join(folder, 'image-*.json')).sort()
  if (made.length !== 2) throw new Error(`There should be two architectures: ${made.join(', ')}`)
  const parts = made.map(path => `${image}@${JSON.parse(readFileSync(path, 'utf8'))['containerimage.digest']}`)
  const whole = `${image}:commit-${commit}`
  tag(parts, whole)
  const digest = digestOf(whole)
  if (digest === undefined) throw new Error(`${whole} was pushed, and is not there.`)
  run('cosign', 'sign', '--yes', `${image}@${digest}`)
  return digest
}

function publish(): void {
  const released = `${image}:${version}`
  const earlier = digestOf(released)
  if (earlier !== undefined) {
    const signer = `--certificate-identity=${server}/${given('GITHUB_WORKFLOW_REF')}`
    const issuer = '--certificate-oidc-issuer=https://token.actions.githubusercontent.com'
    run('cosign', 'verify', signer, issuer, `${image}@${earlier}`)
  }
  const digest = earlier ?? put()
  const line = version.split('.').slice(0, 2).join('.')
  tag([`${image}@${digest}`], released, `${image}:${line}`, `${image}:latest`)
  appendFileSync(given('GITHUB_OUTPUT'), `name=${image}\ndigest=${digest}\n`)
  appendFileSync(join(folder, 'notes.md'), `\nThe image is \`${image}@${digest}\`.\n`)
}

const actions: Readonly<Record<string, () => void>> = { build, publish }
const action = actions[process.argv[2] ?? '']
if (action === undefined) throw new Error('build or publish?')
action()
