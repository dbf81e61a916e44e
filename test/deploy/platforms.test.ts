import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import parsers from '@stoplight/spectral-parsers'
import { readConfig } from '../../src/config/config.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { pairsIn, stagesOf } from './dockerfile.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

// biome-ignore lint/suspicious/noExplicitAny: files of others' shapes, of which a few members are read
type Any = any

/** Milliseconds; src/cli/serve.ts. */
const LONGEST_STOP = 9_500

/** What each platform must be told, whatever it calls it. */
interface Told {
  readonly image: string
  readonly health: string
  readonly port: number
  readonly replicas: number
  /** Where the volume is; undefined: there is none. */
  readonly volume: string | undefined
  /** Milliseconds. */
  readonly grace: number
  readonly env: Readonly<Record<string, string>>
}

/** Strings, numbers and truth values below `[table]` and `[[table]]`, as much of TOML as fly.toml has. */
function tomlOf(text: string): Any {
  const whole: Any = {}
  let table = whole
  for (const line of text.split('\n').map(line => line.trim())) {
    const [, list, path] = /^(\[?)\[([\w.]+)\]\]?$/.exec(line) ?? []
    const [, key, value] = /^(\w+) = (.+)$/.exec(line) ?? []
    if (path !== undefined) {
      const names = path.split('.')
      const last = names.pop()!
      const parent = names.reduce((above, name) => above[name], whole)
      table = {}
      parent[last] = list === '' ? table : [...(parent[last] ?? []), table]
    } else if (key !== undefined) table[key] = JSON.parse(value!)
    else assert.match(line, /^(#.*)?$/)
  }
  return whole
}

const yamlOf = (text: string): Any[] =>
  text.split(/^---$/m).map(part => {
    const { data, diagnostics } = parsers.Yaml.parse(part)
    assert.deepEqual(diagnostics, [])
    return data
  })

/** What deploy/railway.ts hands to the package of Railway's that its command line brings. */
async function railwayService(): Promise<Any> {
  const code = `
export const [volume, service, project] = ['volume', 'service', 'project'].map(is => (name, config) => ({ is, name, ...config }))
export const image = name => name
export const defineRailway = make => make()`
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'railway/iac'
        ? { url: `data:text/javascript,${encodeURIComponent(code)}`, shortCircuit: true }
        : next(specifier, context),
  })
  try {
    const { default: made } = await import(new URL('../../deploy/railway.ts', import.meta.url).href)
    return made.resources.find(({ is }: Any) => is === 'service')
  } finally {
    hooks.deregister()
  }
}

/** Of a workload: its pod, and the one container in it. */
function podOf(path: string) {
  const [{ spec, kind }] = yamlOf(read(path))
  const pod = spec.template.spec
  assert.equal(pod.containers.length, 1)
  return { kind, spec, labels: spec.template.metadata.labels, pod, container: pod.containers[0] }
}

function kubernetes(path: string): Told {
  const { spec, pod, container } = podOf(path)
  const { path: health, port } = container.readinessProbe.httpGet
  return {
    image: container.image,
    health,
    port: container.ports.find(({ name }: Any) => name === port).containerPort,
    replicas: spec.replicas,
    volume: container.volumeMounts.find(({ name }: Any) => name === 'list')?.mountPath,
    grace: (pod.terminationGracePeriodSeconds - (container.lifecycle?.preStop.sleep.seconds ?? 0)) * 1_000,
    env: Object.fromEntries(container.env.map(({ name, value }: Any) => [name, value])),
  }
}

const seconds = (text: string) => Number(/^(\d+)s$/.exec(text)?.[1]) * 1_000
const BASE_URL = 'https://waitlist.example.com'

const platforms: Readonly<Record<string, () => Told | Promise<Told>>> = {
  'deploy/fly.toml'() {
    const {
      build,
      http_service: http,
      mounts,
      env,
      kill_timeout: grace,
      kill_signal: signal,
    } = tomlOf(read('deploy/fly.toml'))
    assert.equal(signal, 'SIGTERM')
    assert.deepEqual([http.auto_stop_machines, http.auto_start_machines, http.force_https], ['off', false, true])
    const [{ path }] = http.checks
    return {
      image: build.image,
      health: path,
      port: http.internal_port,
      replicas: 1,
      volume: mounts[0].destination,
      grace: seconds(grace),
      env,
    }
  },
  'deploy/render.yaml'() {
    const [{ services }] = yamlOf(read('deploy/render.yaml'))
    const [{ image, healthCheckPath: health, numInstances: replicas, disk, maxShutdownDelaySeconds, envVars }] =
      services
    const env = Object.fromEntries(envVars.map(({ key, value, sync }: Any) => [key, sync === false ? BASE_URL : value]))
    return {
      image: image.url,
      health,
      port: Number(env.PORT),
      replicas,
      volume: disk.mountPath,
      grace: maxShutdownDelaySeconds * 1_000,
      env,
    }
  },
  async 'deploy/railway.ts'() {
    const { source: image, healthcheck: health, replicas, domains, volumeMounts, env: given } = await railwayService()
    const { RAILWAY_DEPLOYMENT_DRAINING_SECONDS: grace, ...env } = given
    const [volume] = Object.keys(volumeMounts)
    return { image, health, port: domains[0].port, replicas, volume, grace: Number(grace) * 1_000, env }
  },
  'deploy/kubernetes.yaml': () => kubernetes('deploy/kubernetes.yaml'),
  'deploy/kubernetes.instances.yaml': () => kubernetes('deploy/kubernetes.instances.yaml'),
}

/** What somebody adds as secrets. */
const secrets = { DATABASE_URL: 'postgres://me:secret@db/waitlist', REDIS_URL: 'redis://redis' }

/** How many proxies name the visitor in X-Forwarded-For there. */
const HOPS: Readonly<Record<string, number>> = { 'deploy/fly.toml': 2, 'deploy/railway.ts': 2, 'deploy/render.yaml': 3 }

const last = stagesOf(read('Dockerfile')).at(-1)!.instructions
const imageEnv = Object.assign({}, ...last.filter(({ word }) => word === 'ENV').map(({ rest }) => pairsIn(rest)))

for (const [path, tell] of Object.entries(platforms)) {
  test(`${path} asks for our health, leads to our port, and gives us time to stop and a place for the list`, async () => {
    const { image, health, port, replicas, volume, grace, env } = await tell()
    const several = path.includes('.instances.')
    // Which version, scripts/release/check.ts says of each tag.
    assert.match(image, /^(?:waitlist|ghcr\.io\/[\w.-]+\/[\w.-]+):\d+\.\d+\.\d+$/)
    assert.equal(health, '/api/health')
    assert.ok(grace > LONGEST_STOP, `${grace} ms`)
    assert.deepEqual([volume, replicas], several ? [undefined, 2] : ['/data', 1])
    const result = await readConfig({ ...imageEnv, ...env, ...(several && secrets) })
    assert.ok('config' in result, JSON.stringify(result))
    const { config } = result
    assert.deepEqual(config.warnings, [])
    assert.deepEqual([config.port, config.host, config.baseUrl], [port, '0.0.0.0', BASE_URL])
    assert.deepEqual(config.proxies, { kind: 'hops', hops: HOPS[path] ?? 1 })
    assert.equal(config.store.kind, several ? 'postgres' : 'sqlite')
    if (config.store.kind === 'sqlite') assert.equal(config.store.path, '/data/waitlist.db')
  })
}

describe('Kubernetes', () => {
  const paths = ['deploy/kubernetes.yaml', 'deploy/kubernetes.instances.yaml']
  const isHere = spawnSync('kubernetes-validate', ['--version']).status === 0

  test('takes each of our resources, and nothing else', {
    skip: !isHere && 'kubernetes-validate is not installed; .ci/run installs it',
  }, t => {
    const validate = (path: string) => spawnSync('kubernetes-validate', ['--strict', path], { encoding: 'utf8' })
    for (const path of paths) {
      const { status, stdout, stderr } = validate(join(root, path))
      assert.equal(status, 0, stdout + stderr)
    }
    const broken = join(temporaryFolder(t), 'broken.yaml')
    writeFileSync(broken, read(paths[0]!).replace('readOnlyRootFilesystem', 'readOnlyRootFileSystem'))
    assert.notEqual(validate(broken).status, 0)
  })

  test('leads to one of the two lists, should somebody apply both files', () => {
    const [one, several] = paths.map(path => {
      const { spec, labels } = podOf(path)
      const services = yamlOf(read(path)).filter(({ kind }) => kind === 'Service')
      assert.deepEqual([spec.selector.matchLabels, ...services.map(({ spec }) => spec.selector)], [labels, labels])
      return labels
    })
    assert.notDeepEqual(one, several)
  })

  test('gives the program no rights, a root that is read only, and at most one process on the file', () => {
    for (const path of paths) {
      const { pod, container, kind } = podOf(path)
      const { runAsNonRoot, runAsUser, runAsGroup, seccompProfile } = pod.securityContext
      assert.deepEqual(
        { runAsNonRoot, runAsUser, runAsGroup, seccompProfile },
        {
          runAsNonRoot: true,
          runAsUser: 1000,
          runAsGroup: 1000,
          seccompProfile: { type: 'RuntimeDefault' },
        },
      )
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      assert.deepEqual([pod.automountServiceAccountToken, pod.enableServiceLinks], [false, false])
      assert.ok(container.resources.limits.memory)
      assert.equal(kind, path === paths[0] ? 'StatefulSet' : 'Deployment')
    }
    assert.equal(podOf(paths[0]!).pod.securityContext.fsGroup, 1000)
  })
})

test('each command of docs/platforms.md names files that exist', t => {
  const programs = temporaryFolder(t)
  const log = join(programs, 'log')
  for (const name of ['fly', 'railway', 'kubectl']) {
    const path = join(programs, name)
    writeFileSync(path, `#!/bin/sh\necho ${name} "$@" >> ${log}\n`)
    chmodSync(path, 0o755)
  }
  const blocks = [...read('docs/platforms.md').matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block!)
  const env = { PATH: `${programs}:/usr/bin:/bin` }
  for (const block of blocks) execFileSync('sh', ['-e', '-c', block], { cwd: root, env })
  const typed = readFileSync(log, 'utf8').trim().split('\n')
  assert.equal(typed.length, blocks.join('').trim().split('\n').length)
  const files = typed.flatMap(line => line.match(/deploy\/\S+/g) ?? [])
  assert.deepEqual(
    [...new Set(files)].sort(),
    Object.keys(platforms)
      .filter(path => path !== 'deploy/render.yaml')
      .sort(),
  )
  for (const file of files) assert.ok(existsSync(join(root, file)), file)
})
