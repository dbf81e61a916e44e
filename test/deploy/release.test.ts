import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import parsers from '@stoplight/spectral-parsers'
import { parts } from '../../scripts/release/changelog.ts'
import { blocksOf } from '../documents.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { listening } from '../harness/listening.ts'
import { npmSettings } from '../harness/npm-start.ts'
import { cloned } from '../harness/packed.ts'
import { isSlow } from '../harness/slow.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const REPOSITORY = 'Ada/Waitlist'
const VERSION = JSON.parse(read('package.json')).version as string
const TAG = `v${VERSION}`

/** A clone of the owner's, on its main, with a key to sign with. */
function owned(t: TestContext) {
  const cwd = cloned(t)
  const home = temporaryFolder(t)
  symlinkSync(join(root, 'node_modules'), join(cwd, 'node_modules'))
  const env: Record<string, string> = {
    HOME: home,
    PATH: process.env.PATH!,
    GIT_CONFIG_NOSYSTEM: '1',
  }
  const git = (...args: string[]) => execFileSync('git', args, { cwd, env, encoding: 'utf8', stdio: 'pipe' })
  const key = (name: string) => {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', join(home, name)])
    return readFileSync(join(home, `${name}.pub`), 'utf8')
  }
  git('init', '--quiet', '--initial-branch=main')
  for (const [name, value] of Object.entries({
    'user.name': 'Ada',
    'user.email': 'ada@example.com',
    'gpg.format': 'ssh',
    'user.signingkey': join(home, 'ada'),
    'remote.origin.url': `git@github.com:${REPOSITORY}.git`,
  })) {
    git('config', name, value)
  }
  writeFileSync(join(cwd, '.github', 'allowed_signers'), `ada@example.com namespaces="git" ${key('ada')}`)
  key('eve')
  return {
    cwd,
    env,
    git,
    write: (path: string, change: (text: string) => string) =>
      writeFileSync(join(cwd, path), change(readFileSync(join(cwd, path), 'utf8'))),
    /** Commits all of it, which main then has. */
    commit() {
      git('add', '--all')
      git('commit', '--quiet', '--allow-empty', '--message', 'A release')
      git('update-ref', 'refs/remotes/origin/main', 'HEAD')
    },
    check(tag = TAG) {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['scripts/release/check.ts', tag], {
        cwd,
        env,
        encoding: 'utf8',
      })
      return { status, said: (stdout + stderr).trim().split('\n') }
    },
  }
}

/** What prepare.ts does, but for the databases: they are as if they had been made today. */
function prepared(t: TestContext) {
  const clone = owned(t)
  const url = `git+https://github.com/${REPOSITORY}.git`
  clone.write('package.json', text => JSON.stringify({ ...JSON.parse(text), repository: { type: 'git', url } }))
  clone.write('CHANGELOG.md', text => text.replace(/^(## \[\S+\]) - \S+$/m, '$1 - 2030-01-01'))
  const told = `const { imageOf, outdated } = await import('./scripts/release/release.ts')
    const { migrations } = await import('./scripts/release/schema.ts')
    console.log(JSON.stringify({ migrations: migrations(), files: outdated('${VERSION}', imageOf('${REPOSITORY}')) }))`
  const asked = execFileSync(process.execPath, ['-e', told], { cwd: clone.cwd, encoding: 'utf8' })
  const { migrations, files } = JSON.parse(asked) as { migrations: object; files: { path: string; text: string }[] }
  for (const { path, text } of files) clone.write(path, () => text)
  const made = `test/fixtures/released/${VERSION}/made.json`
  clone.write(made, text => JSON.stringify({ ...JSON.parse(text), migrations }))
  clone.commit()
  return clone
}

describe('a tag may be released', { concurrency: true, timeout: 60_000 }, () => {
  test('that is signed by somebody who may, of its own name, on main, and the latest', t => {
    const { git, check, commit } = prepared(t)
    const refused = (sentence: string | RegExp, tag = TAG) => {
      const { status, said } = check(tag)
      assert.equal(status, 1)
      assert.match(said.join('\n'), new RegExp(sentence))
      if (tag === TAG) assert.equal(said.length, 1, said.join('\n'))
    }
    refused('there is no such tag')
    git('tag', TAG)
    refused('no annotated tag of that name')
    git('tag', '--force', '--annotate', '--message', TAG, TAG)
    refused('not signed by anybody')
    git(
      '-c',
      `user.signingkey=${join(git('config', 'user.signingkey').trim(), '..', 'eve')}`,
      'tag',
      '--force',
      '--sign',
      '--message',
      TAG,
      TAG,
    )
    refused('not signed by anybody')
    // Another version's tag, which is signed, under this name.
    git('tag', '--sign', '--message', 'v0.0.1', 'v0.0.1')
    git('update-ref', `refs/tags/${TAG}`, 'refs/tags/v0.0.1')
    refused('no annotated tag of that name')
    refused(`the tag is "v0.0.1", but package.json says ${VERSION}`, 'v0.0.1')
    git('tag', '--force', '--sign', '--message', TAG, TAG)
    assert.deepEqual(check(), { status: 0, said: [`${TAG} may be released.`] })
    git('tag', 'v99.0.0')
    refused('there is a later version: v99.0.0')
    git('tag', '--delete', 'v99.0.0')
    git('update-ref', '-d', 'refs/remotes/origin/main')
    git('update-ref', 'refs/remotes/origin/main', git('commit-tree', '-m', 'Another', 'HEAD^{tree}').trim())
    refused('the commit is not on main')
    commit()
    refused('the tag is of another commit')
  })

  test('only where every file says its version, and the databases have its schema', t => {
    const { cwd, git, write, commit, check } = prepared(t)
    const naming = globSync(['compose.yaml', 'deploy/*'], { cwd }).filter(path => /waitlist:\d+\.\d/.test(read(path)))
    assert.ok(naming.length >= 7)
    for (const path of naming) {
      const images = readFileSync(join(cwd, path), 'utf8').match(/[\w./-]*waitlist:\d[\w.]*/g)
      assert.deepEqual(new Set(images), new Set([`ghcr.io/ada/waitlist:${VERSION}`]), path)
    }
    write('compose.yaml', text => text.replace('ghcr.io/ada/', 'ghcr.io/eve/'))
    write('package-lock.json', text => text.replace(`"version": "${VERSION}"`, '"version": "0.0.1"'))
    write(
      'README.md',
      text => `${text}
npm install waitlist@0.0.1
`,
    )
    write('CHANGELOG.md', text => text.replace('- 2030-01-01', '- unreleased'))
    write('package.json', text => text.replace(REPOSITORY, 'Eve/Waitlist'))
    write('src/stores/sqlite/migrations/0001.sql', text => `${text}\ncreate table another (number integer);`)
    commit()
    git('tag', '--sign', '--message', TAG, TAG)
    const { status, said } = check()
    assert.equal(status, 1)
    assert.deepEqual(said, [
      'package.json says that its repository is git+https://github.com/Eve/Waitlist.git',
      'README.md names another version or image',
      'compose.yaml names another version or image',
      'package-lock.json says 0.0.1',
      'CHANGELOG.md says "unreleased" where the date should be',
      `the schema changed since the databases of ${VERSION} were made: node scripts/release/databases.ts`,
    ])
  })
})

/** A program of the outside world, which says what it was told; `rest` is what it does then. */
function standIn(folder: string, name: string, rest: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\necho "${name} $*" >>"$STATE/told"\n${rest}\n`)
  chmodSync(join(folder, name), 0o755)
}

const digest = (of: string) => `sha256:${of.repeat(64)}`

/** Docker, cosign and gh, which keep in `$STATE` what they were told; and npm, which publishes nowhere but here. */
function outside(t: TestContext) {
  const state = temporaryFolder(t)
  const bin = join(state, 'bin')
  mkdirSync(bin)
  standIn(
    bin,
    'docker',
    `case "$*" in
      login*) grep -q '^token$' ;;
      *'buildx build'*) for each; do case $each in --metadata-file=*) echo '{"containerimage.digest":"${digest('a')}"}' >"\${each#*=}" ;; esac; done ;;
      *'imagetools create'*) for each; do case $each in *:latest) touch "$STATE/released" ;; esac; done ;;
      *'imagetools inspect'*:commit-*) echo ${digest('c')} ;;
      *'imagetools inspect'*) if [ -e "$STATE/released" ]; then echo ${digest('c')}; else echo "ERROR: $5: not found" >&2; exit 1; fi ;;
    esac`,
  )
  standIn(bin, 'cosign', `case $1 in sign-blob) touch "$4" ;; verify) [ ! -e "$STATE/foreign" ] ;; esac`)
  standIn(
    bin,
    'gh',
    `case $2 in
      view) cat "$STATE/draft" 2>/dev/null || { echo 'release not found' >&2; exit 1; } ;;
      create) echo true >"$STATE/draft" ;;
      edit) echo false >"$STATE/draft" ;;
    esac`,
  )
  const npm = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim()
  // Provenance is what the workflow's host signs.
  standIn(
    bin,
    'npm',
    `case $1 in publish) shift; exec '${npm}' publish --provenance=false "$@" ;; esac; exec '${npm}' "$@"`,
  )
  const told = () => {
    const path = join(state, 'told')
    const lines = existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
    writeFileSync(path, '')
    return lines
  }
  return { state, bin, told }
}

/** A registry of npm's, with as much of it as publishing a package takes. */
async function startRegistry(t: TestContext) {
  const packages = new Map<string, { versions: Record<string, { dist: { integrity: string } }> }>()
  const server = createServer(async (request, response) => {
    const name = request.url!.slice(1).split('?')[0]!
    if (request.method === 'PUT') {
      let body = ''
      for await (const chunk of request.setEncoding('utf8')) body += chunk
      packages.set(name, JSON.parse(body))
    }
    const found = packages.get(name)
    response.writeHead(found === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(found ?? { error: 'Not found' }))
  })
  const url = await listening(t, server)
  return { url, packages }
}

interface Workflow {
  readonly jobs: Readonly<Record<string, { readonly steps: readonly { readonly run?: string }[] }>>
}
const { jobs } = parsers.Yaml.parse(read('.github/workflows/release.yml')).data as Workflow
/** What a job of the workflow runs. */
const runOf = (job: string) => jobs[job]!.steps.flatMap(({ run }) => run ?? [])

test('a release, from its preparation to the second run of its workflow, with stand-ins for the outside world', {
  timeout: 400_000,
  skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
}, async t => {
  const { cwd, env, git, write, commit } = owned(t)
  const { state, bin, told } = outside(t)
  const registry = await startRegistry(t)
  writeFileSync(join(env.HOME!, '.npmrc'), `${registry.url.slice('http:'.length)}/:_authToken=token\n`)
  const outputs = join(state, 'outputs')
  const run = (command: string, more: Record<string, string> = {}) =>
    promisify(execFile)('sh', ['-ec', command], {
      cwd,
      env: {
        ...env,
        PATH: `${bin}:${join(root, 'node_modules', '.bin')}:${env.PATH}`,
        STATE: state,
        ...npmSettings,
        npm_config_cache: execFileSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).trim(),
        GITHUB_ACTOR: 'ada',
        GITHUB_OUTPUT: outputs,
        GITHUB_REF_NAME: TAG,
        GITHUB_REPOSITORY: REPOSITORY,
        VERSION,
        GITHUB_SERVER_URL: 'https://github.com',
        GITHUB_SHA: 'f'.repeat(40),
        GITHUB_TOKEN: 'token',
        GITHUB_WORKFLOW_REF: `${REPOSITORY}/.github/workflows/release.yml@refs/tags/${TAG}`,
        GH_TOKEN: 'token',
        ...more,
      },
    })
  const job = async (name: string) => {
    for (const step of runOf(name)) {
      if (step.startsWith('npm ci')) continue
      await run(step, step.endsWith('/npm.ts') ? { npm_config_registry: registry.url } : {})
    }
  }

  // The owner's part, as the page says it.
  write('CHANGELOG.md', text => text.replace(/^(## \[\S+\]) - \S+$/m, '$1 - unreleased'))
  const page = blocksOf(read('docs/engineering/releasing.md')).filter(({ under }) => under === 'each-release')
  commit()
  for (const line of page.flatMap(({ lines }) => lines)) {
    if (line === 'git push origin main') git('update-ref', 'refs/remotes/origin/main', 'HEAD')
    else if (line !== 'git push origin "v$VERSION"') await run(line)
  }

  told()
  const image = 'ghcr.io/ada/waitlist'
  await job('package')
  await job('executable')
  const release = join(cwd, 'release')
  const here = join(release, `waitlist-${VERSION}-${process.platform}-${process.arch}.tar.gz`)
  // Those of the other machines.
  for (const other of ['other-1', 'other-2'])
    copyFileSync(here, here.replace(`${process.platform}-${process.arch}`, other))
  await job('image')
  copyFileSync(join(release, `image-${process.arch}.json`), join(release, 'image-other.json'))
  assert.ok(told().some(line => line.startsWith('docker buildx build ') && line.includes('push-by-digest=true')))

  await job('publish')
  const first = told().filter(line => !line.startsWith('npm'))
  const of = (program: string) => first.filter(line => line.startsWith(program))
  assert.deepEqual(of('cosign sign --yes'), [`cosign sign --yes ${image}@${digest('c')}`])
  const line = VERSION.split('.').slice(0, 2).join('.')
  assert.ok(
    first.indexOf(`cosign sign --yes ${image}@${digest('c')}`) <
      first.indexOf(
        `docker buildx imagetools create --tag ${image}:${VERSION} --tag ${image}:${line} --tag ${image}:latest ${image}@${digest('c')}`,
      ),
    'it is signed before it has the tags',
  )
  assert.equal(readFileSync(outputs, 'utf8'), `name=${image}\ndigest=${digest('c')}\n`)
  const notes = readFileSync(join(release, 'notes.md'), 'utf8')
  const written = parts().find(({ version }) => version === VERSION)!.notes
  assert.equal(
    notes.replaceAll(/\s+/g, ' '),
    `${written} The image is \`${image}@${digest('c')}\`. `.replaceAll(/\s+/g, ' '),
  )
  assert.equal(readFileSync(join(state, 'draft'), 'utf8'), 'false\n')
  assert.deepEqual(Object.keys(registry.packages.get('waitlist')!.versions), [VERSION])
  execFileSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: release })
  const uploaded = of('gh release upload')[0]!.split(' ').slice(5)
  assert.equal(uploaded.length, 7, uploaded.join('\n'))

  // Run again, it changes nothing; nor does it where it had stopped before the last step.
  await job('publish')
  const changes = (lines: readonly string[]) =>
    lines.filter(line => /^(npm publish|cosign sign |gh release (create|upload|edit))/.test(line))
  assert.deepEqual(changes(told()), [])
  writeFileSync(join(state, 'draft'), 'true\n')
  await job('publish')
  assert.deepEqual(
    changes(told()).map(line => line.split(' ')[2]),
    ['upload', 'edit'],
  )

  // What is there and not ours stays, and ends the run.
  writeFileSync(join(state, 'foreign'), '')
  await assert.rejects(run('node scripts/release/image.ts publish'))
  writeFileSync(join(release, `waitlist-${VERSION}.tgz`), 'another package')
  await assert.rejects(run('node scripts/release/npm.ts', { npm_config_registry: registry.url }), /is another package/)
  assert.deepEqual(changes(told()), [])

  const { components } = JSON.parse(readFileSync(join(release, `waitlist-${VERSION}.cdx.json`), 'utf8'))
  const listed = (components as { purl: string }[]).map(({ purl }) => decodeURIComponent(purl).replace(/@[^@]*$/, ''))
  assert.deepEqual(listed.sort(), ['waitlist', ...production].map(name => `pkg:npm/${name}`).sort())
})

/** The packages of the lock file that run in production. */
const production = Object.entries(JSON.parse(read('package-lock.json')).packages as Record<string, { dev?: true }>)
  .filter(([path, { dev }]) => path !== '' && dev !== true)
  .map(([path]) => path.replace(/^.*node_modules\//, ''))
