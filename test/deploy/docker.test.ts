import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { build, type Container, noContainers, run, volume } from './container.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Signs up from within the container: its network is its own. */
async function signUp({ exec }: Container, email: string) {
  const request = { method: 'POST', headers: { 'content-type': 'application/json' } }
  const body = JSON.stringify({ name: 'Ada Lovelace', email })
  const { stdout } = await exec(
    'node',
    '--eval',
    `fetch('http://localhost:8080/api/waitlist', ${JSON.stringify({ ...request, body })})
      .then(answer => answer.text()).then(text => process.stdout.write(text))`,
  )
  return JSON.parse(stdout) as { success: boolean; alreadyExisted: boolean }
}

/** The lines of a page that call Docker. */
const docker = (page: string) => readFileSync(join(root, page), 'utf8').match(/^docker .*$/gm) ?? []

/** The entries of a lock file. */
const locked = (path: string) =>
  (JSON.parse(readFileSync(path, 'utf8')) as { packages: Record<string, { dev?: boolean }> }).packages

const skip = !isSlow ? 'slow: WAITLIST_SLOW_TESTS=1' : noContainers()

test('the stages of the Dockerfile make an image that takes signups, keeps them, and is well only while it can', {
  skip,
  timeout: 300_000,
}, async t => {
  const built = build(t, root)
  // As compose.yaml and the manifests of Kubernetes have it.
  const image = { ...built, user: '1000:1000' }
  const inside = (...path: string[]) => readdirSync(join(image.tree, ...path)).sort()
  assert.deepEqual(inside('waitlist', 'deploy'), ['entrypoint.js', 'health.js'])
  assert.deepEqual(inside('waitlist'), ['LICENSE', 'bin', 'deploy', 'examples', 'node_modules', 'package.json', 'src'])
  assert.deepEqual(inside('waitlist', 'examples', 'messages'), ['en.json', 'messages.json'])
  const packages = locked(join(root, 'package-lock.json'))
  const installed = locked(join(image.tree, 'waitlist/node_modules/.package-lock.json'))
  assert.ok(Object.keys(installed).length > 20)
  for (const name of Object.keys(installed)) assert.equal(packages[name]?.dev, undefined, name)

  const data = { at: '/data', volume: volume(t, image, '/data') }
  const ready = (container: Container) =>
    until(() => {
      assert.equal(container.process.exitCode, null, container.output())
      return container.output().includes('"waitlist is ready"')
    })

  const healthy = ({ exec }: Container) => until(async () => (await exec(...image.health)).code === 0)

  await t.test('with a volume, read only, and without rights', async t => {
    const container = run(t, image, data)
    await ready(container)
    assert.deepEqual(pick(await signUp(container, 'ada@example.com')), [true, false])
    await healthy(container)
    const status = unprivileged(container)
    assert.match(status, /^CapBnd:\t0+$/m)
    assert.match(status, /^NoNewPrivs:\t1$/m)
    assert.equal((await container.exec('sh', '-c', 'touch /data/x && rm /data/x && touch /tmp/x')).code, 0)
    for (const place of ['/', '/waitlist/', '/etc/', '/usr/local/bin/']) {
      assert.notEqual((await container.exec('touch', `${place}x`)).code, 0, place)
    }
    assert.doesNotMatch(container.output(), /inside this container/)
    assert.match((await container.exec('waitlist', 'export')).stdout, /ada@example\.com/)

    container.process.kill('SIGSTOP')
    assert.equal((await container.exec(...image.health)).code, 1)
    container.process.kill('SIGCONT')
    await healthy(container)
    container.process.kill(image.stopSignal)
    assert.equal(await container.exited, 0)
  })

  await t.test('the backup of docs/deploy.md, and how it is put back', async t => {
    const cwd = temporaryFolder(t)
    let container = run(t, image, data)
    await ready(container)
    const lines = docker('docs/deploy.md').filter(line => !line.includes('--file'))
    for (const line of lines.slice(2)) {
      if (line.startsWith('docker compose exec -T waitlist ')) {
        const typed = line.replace('docker compose exec -T waitlist', container.into.join(' '))
        execFileSync('sh', ['-c', typed], { cwd, env: image.env })
      } else if (line === 'docker compose stop waitlist') {
        await signUp(container, 'later@example.com')
        container.process.kill(image.stopSignal)
        assert.equal(await container.exited, 0)
      } else if (line.startsWith('docker compose run --rm waitlist ')) {
        const restored = run(t, { ...image, command: line.split(' ').slice(5) }, data)
        assert.equal(await restored.exited, 0, restored.output())
      } else {
        assert.equal(line, 'docker compose up --detach --wait')
        container = run(t, image, data)
        await ready(container)
      }
    }
    assert.deepEqual(pick(await signUp(container, 'ada@example.com')), [true, true])
    assert.deepEqual(pick(await signUp(container, 'later@example.com')), [true, false])
    container.process.kill(image.stopSignal)
    assert.equal(await container.exited, 0)
  })

  await t.test(
    'with a volume that belongs to root, as Railway, Fly and Render mount it, it becomes user 1000',
    async t => {
      const folder = temporaryFolder(t)
      chmodSync(folder, 0o755)
      mkdirSync(join(folder, 'lost+found'), { mode: 0o700 })
      const data = { at: '/data', volume: folder }
      const container = run(t, built, data, { dropped: false })
      await ready(container)
      assert.deepEqual(pick(await signUp(container, 'ada@example.com')), [true, false])
      await healthy(container)
      unprivileged(container)
      const owners = readdirSync(folder).map(name => [name, statSync(join(folder, name)).uid])
      assert.deepEqual(Object.fromEntries([['.', statSync(folder).uid], ...owners]), {
        '.': 1000,
        'lost+found': 0,
        'waitlist.db': 1000,
        'waitlist.db-lock': 1000,
        'waitlist.db-shm': 1000,
        'waitlist.db-wal': 1000,
      })
      // Who types a command in there is root, too.
      assert.equal((await container.exec('waitlist', 'backup', 'new.db')).code, 0)
      assert.equal(statSync(join(folder, 'new.db')).uid, 1000)
      container.process.kill(image.stopSignal)
      assert.equal(await container.exited, 0)

      for (const [user, said] of [
        [
          '0:0',
          /^waitlist: root may not give \/data to user 1000 .*: start the container as that user \(--user 1000:1000\)/,
        ],
        ['1000:1000', /this user \(uid 1000\) may not write in the folder \/data, which belongs to uid 0/],
      ] as const) {
        chownSync(folder, 0, 0)
        const refused = run(t, { ...built, user }, data)
        assert.equal(await refused.exited, 1)
        assert.match(refused.output(), said)
      }
    },
  )

  await t.test('without a volume it works, and says that the list goes with the container', async t => {
    const container = run(t, image)
    await ready(container)
    assert.deepEqual(pick(await signUp(container, 'ada@example.com')), [true, false])
    assert.match(container.output(), /"folder":"\/data","msg":"the list is kept inside this container/)
  })
})

/** The state of a container's process, which has no right of root left. */
function unprivileged({ process: { pid } }: Container): string {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  for (const id of ['Uid', 'Gid']) assert.match(status, new RegExp(`^${id}:\t1000\t1000\t1000\t1000$`, 'm'))
  assert.match(status, /^Groups:\t *$/m)
  for (const rights of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb'])
    assert.match(status, new RegExp(`^${rights}:\t0+$`, 'm'))
  return status
}

const pick = ({ success, alreadyExisted }: { success: boolean; alreadyExisted: boolean }) => [success, alreadyExisted]
