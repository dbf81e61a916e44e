import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './harness/folder.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const NAMES = ['Dockerfile', 'deploy/compose.instances.yaml']

/** The files that pin images, and a registry in which each image of a name has a digest; `without`: an architecture that it lacks. */
function project(t: TestContext, { digestOf = (_: string, pinned: string) => pinned, without = '' } = {}) {
  const folder = temporaryFolder(t)
  mkdirSync(join(folder, 'deploy'))
  for (const name of [...NAMES, 'package.json']) copyFileSync(join(root, name), join(folder, name))
  const read = () => NAMES.map(name => readFileSync(join(folder, name), 'utf8')).join('')
  const answers = Object.fromEntries(
    [...read().matchAll(/(\S+:\S+)@(sha256:\S+)/g)].map(([, image, pinned]) => {
      const manifests = ['amd64', 'arm64']
        .filter(architecture => architecture !== without)
        .map(architecture => ({ platform: { os: 'linux', architecture } }))
      return [image, { digest: digestOf(image!, pinned!), manifests }]
    }),
  )
  const docker = `#!${process.execPath}
const [buildx, imagetools, inspect, image, option, format] = process.argv.slice(2)
const answer = ${JSON.stringify(answers)}[image]
if ([buildx, imagetools, inspect, option, format].join(' ') !== 'buildx imagetools inspect --format {{json .Manifest}}') process.exit(64)
if (answer === undefined) { console.error(image + ': not found'); process.exit(1) }
console.log(JSON.stringify(answer))`
  writeFileSync(join(folder, 'docker'), docker, { mode: 0o755 })
  const run = (...options: string[]) => {
    const args = [join(root, 'scripts/images.ts'), ...options]
    const { status, stderr } = spawnSync(process.execPath, args, {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: folder },
    })
    return { status, stderr }
  }
  return { folder, read, run, images: Object.keys(answers) }
}

const OTHER = `sha256:${'0'.repeat(64)}`

test('the images are as pinned, or the script names those that are not, and takes them over if it is told to', t => {
  const { read, run, images } = project(t, {
    digestOf: (image, pinned) => (image.startsWith('caddy') ? OTHER : pinned),
  })
  assert.equal(images.length, 4)
  const before = read()
  const { status, stderr } = run()
  assert.equal(status, 1)
  assert.match(stderr, new RegExp(`^pinned caddy:\\S+, the registry has caddy:\\S+@${OTHER}\\n$`))
  assert.equal(read(), before)
  assert.equal(run('--write').status, 0)
  assert.equal(read(), before.replace(/(?<=caddy:\S+@)sha256:\w+/, OTHER))
  assert.deepEqual(run(), { status: 0, stderr: '' })
})

test('an image that one architecture lacks is not taken over', t => {
  const { read, run } = project(t, { digestOf: () => OTHER, without: 'arm64' })
  const before = read()
  const { status, stderr } = run('--write')
  assert.equal(status, 1)
  assert.equal(stderr.match(/: none for linux\/arm64$/gm)?.length, 4)
  assert.equal(read(), before)
})

test('the release of Node.js in package.json is the one that is asked for', t => {
  const { folder, run } = project(t)
  const path = join(folder, 'package.json')
  const manifest = JSON.parse(readFileSync(path, 'utf8'))
  manifest.devDependencies.node = '99.1.2'
  writeFileSync(path, JSON.stringify(manifest))
  const { status, stderr } = run()
  assert.equal(status, 1)
  assert.match(stderr, /^node:99\.1\.2-trixie-slim: node:99\.1\.2-trixie-slim: not found$/m)
})
