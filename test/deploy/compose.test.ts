import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import parsers from '@stoplight/spectral-parsers'
import { readConfig } from '../../src/config/config.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { pairsIn, stagesOf } from './dockerfile.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Service {
  readonly build?: string
  readonly image?: string
  readonly env_file?: string
  readonly environment?: Readonly<Record<string, string | number>>
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly networks?: readonly string[]
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: object
  readonly [setting: string]: unknown
}
interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly networks?: Readonly<Record<string, { readonly internal?: boolean } | null>>
  readonly configs?: Readonly<Record<string, { readonly content: string }>>
}

/** The settings that a person writes into `.env`. */
const written = {
  BASE_URL: 'https://waitlist.example.com',
  POSTGRES_PASSWORD: 'random1',
  VALKEY_PASSWORD: 'random2',
} as Readonly<Record<string, string>>

/** Fills in variables as Compose does (https://docs.docker.com/reference/compose-file/interpolation/). */
const filled = (text: string, env = written): string =>
  text.replaceAll(/\$\$|\$\{(\w+):([?-])([^}]*)\}/g, (all, name, kind, other) => {
    if (all === '$$') return '$'
    const value = env[name]
    assert.ok(value !== undefined || kind === '-', `${name}: ${other}`)
    return value ?? other
  })

const compose = (path: string): Compose => {
  const { data, diagnostics } = parsers.Yaml.parse(filled(read(path).replaceAll(/^ *#.*$/gm, '')))
  assert.deepEqual(diagnostics, [])
  return data as Compose
}

const image = stagesOf(read('Dockerfile')).at(-1)!.instructions
const imageEnv = Object.assign({}, ...image.filter(({ word }) => word === 'ENV').map(({ rest }) => pairsIn(rest)))

/** Milliseconds; src/cli/serve.ts. */
const LONGEST_STOP = 9_500

const validator = spawnSync('check-jsonschema', ['--version']).status === 0
const noCaddy = spawnSync('caddy', ['version']).status !== 0 && 'caddy is not installed; .ci/run installs it'

for (const path of ['compose.yaml', 'deploy/compose.instances.yaml']) {
  describe(path, () => {
    const { services } = compose(path)
    const ours = Object.entries(services).filter(([, { build }]) => build !== undefined)

    test('is a Compose file', { skip: !validator && 'check-jsonschema is not installed; .ci/run installs it' }, () => {
      const { status, stdout } = spawnSync(
        'check-jsonschema',
        ['--builtin-schema', 'vendor.compose-spec', join(root, path)],
        { encoding: 'utf8' },
      )
      assert.equal(status, 0, stdout)
    })

    test('cannot be started without the settings that it needs', () => {
      assert.throws(() => filled(read(path), {}), /set it in \.env/)
    })

    test('sets up the program without a mistake, and without a warning', async () => {
      assert.ok(ours.length > 0)
      for (const [name, { environment }] of ours) {
        const given = Object.entries(environment!).map(([name, value]) => [name, String(value)])
        const result = await readConfig({ ...imageEnv, ...written, ...Object.fromEntries(given) })
        assert.ok('config' in result, JSON.stringify(result))
        assert.deepEqual(result.config.warnings, [], name)
        assert.deepEqual(result.config.proxies, { kind: 'hops', hops: 1 })
        assert.equal(result.config.port, 8080)
      }
    })

    test('builds our image from the folder of the Dockerfile, and reads the settings beside it', () => {
      for (const [name, { build, env_file }] of ours) {
        assert.equal(resolve(root, dirname(path), build!), resolve(root), name)
        assert.equal(join(root, dirname(path), env_file!), join(root, '.env'), name)
      }
    })

    test('gives the program no rights, a root that is read only, bounds, and time to stop', () => {
      for (const [name, service] of ours) {
        const { read_only, cap_drop, security_opt, init, restart, privileged, user } = service
        assert.deepEqual(
          { read_only, cap_drop, security_opt, init, restart, privileged, user },
          {
            read_only: true,
            cap_drop: ['ALL'],
            security_opt: ['no-new-privileges:true'],
            init: true,
            restart: 'unless-stopped',
            privileged: undefined,
            user: '1000:1000',
          },
          name,
        )
        assert.ok(service.mem_limit && service.pids_limit, name)
        assert.ok(Number.parseInt(String(service.stop_grace_period), 10) * 1_000 > LONGEST_STOP, name)
      }
      for (const [name, { mem_limit, security_opt }] of Object.entries(services)) {
        assert.ok(mem_limit, name)
        assert.deepEqual(security_opt, ['no-new-privileges:true'], name)
      }
    })
  })
}

test('one process is published to this machine alone, and keeps its list in a volume with a name', () => {
  const { waitlist } = compose('compose.yaml').services
  assert.deepEqual(waitlist!.ports, ['127.0.0.1:8080:8080'])
  assert.deepEqual(waitlist!.volumes, ['list:/data'])
  assert.equal(waitlist!.environment!.DATABASE_URL, 'sqlite:/data/waitlist.db')
})

describe('several instances', () => {
  const { services, networks, configs } = compose('deploy/compose.instances.yaml')
  const inNetwork = (network: string) =>
    Object.keys(services).filter(name => services[name]!.networks?.includes(network))

  test('only Caddy is published, and the databases have no way out', () => {
    assert.deepEqual(
      Object.keys(services).filter(name => services[name]!.ports !== undefined),
      ['caddy'],
    )
    assert.deepEqual(inNetwork('front'), ['one', 'two', 'caddy'])
    assert.deepEqual(inNetwork('back'), ['one', 'two', 'postgres', 'valkey'])
    assert.deepEqual(inNetwork('outside'), ['one', 'two', 'caddy'])
    assert.deepEqual(networks, { front: { internal: true }, back: { internal: true }, outside: null })
  })

  test('Caddy takes its configuration', { skip: noCaddy }, t => {
    const file = join(temporaryFolder(t), 'Caddyfile')
    writeFileSync(file, configs!.caddyfile!.content)
    const { status, stderr } = spawnSync('caddy', ['adapt', '--adapter', 'caddyfile', '--validate', '--config', file], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: dirname(file), BASE_URL: written.BASE_URL },
    })
    assert.equal(status, 0, stderr)
  })
})

describe('the Dockerfile', () => {
  const last = (word: string) => image.findLast(instruction => instruction.word === word)

  test('has nothing that hadolint would change', {
    skip: spawnSync('hadolint', ['--version']).status !== 0 && 'hadolint is not installed; .ci/run installs it',
  }, () => {
    const { status, stdout } = spawnSync('hadolint', ['--no-color', join(root, 'Dockerfile')], { encoding: 'utf8' })
    assert.equal(status, 0, stdout)
  })

  test('has the release of Node that the project is tested with', () => {
    const { devDependencies } = JSON.parse(read('package.json'))
    const [pulled, ...others] = stagesOf(read('Dockerfile'))
    assert.equal(pulled!.base.split('@')[0], `node:${devDependencies.node}-trixie-slim`)
    for (const { base } of others) assert.equal(base, pulled!.name)
  })

  test('installs nothing that is made for one kind of processor', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Record<string, unknown>> }
    const here = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true)
    assert.ok(here.length > 20)
    for (const [path, entry] of here) {
      for (const sign of ['os', 'cpu', 'libc', 'hasInstallScript']) assert.equal(entry[sign], undefined, path)
    }
    const runs = stagesOf(read('Dockerfile')).flatMap(({ instructions }) => instructions)
    for (const { word, rest } of runs) if (word === 'RUN') assert.match(rest, /^(?:npm ci|ln -s) /)
  })

  test('has a signal, a health check, and its settings are those of the program', async () => {
    assert.equal(last('STOPSIGNAL')!.rest, 'SIGTERM')
    assert.ok(last('HEALTHCHECK')!.rest.startsWith('CMD ["'))
    const result = await readConfig({ ...imageEnv, BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1' })
    assert.deepEqual('config' in result && result.config.warnings, [])
    assert.equal(last('EXPOSE')!.rest, imageEnv.PORT)
  })
})

/** The options that the documentation uses (https://docs.docker.com/reference/cli/docker/compose/). */
const options: Readonly<Record<string, readonly string[]>> = {
  up: ['--detach', '--build', '--wait', '--no-deps'],
  build: ['--pull'],
  exec: ['-T'],
  run: ['--rm'],
  stop: [],
  down: ['--volumes'],
}

describe('images that are pulled', () => {
  const pulled = ['Dockerfile', 'deploy/compose.instances.yaml'].flatMap(path =>
    [...read(path).matchAll(/^(?:FROM| +image:) (?!waitlist:|ghcr)(\S+[:@]\S+)/gm)].map(([, image]) => image!),
  )

  test('are pinned by a version and a digest', () => {
    assert.equal(pulled.length, 4)
    for (const image of pulled) assert.match(image, /^[a-z/]+:\d+\.\d+[\w.-]*@sha256:[0-9a-f]{64}$/)
  })
})

test('every line of the documentation that calls Compose names files, commands, options and services that exist', () => {
  const lines = ['docs/deploy.md', 'docs/litestream.md', 'compose.yaml', 'deploy/compose.instances.yaml']
    .flatMap(path => [...read(path).matchAll(/docker compose ([^`\n]*)/g)])
    .map(([, line]) => line!.trim().split(/\s+/))
  assert.ok(lines.length > 8)
  for (const words of lines) {
    const said = words.join(' ')
    let file = 'compose.yaml'
    while (words[0]?.startsWith('--')) {
      const [option, value] = words.splice(0, 2)
      assert.ok(option === '--file' || option === '--env-file', said)
      if (option === '--file') file = value!
      else assert.equal(value, '.env', said)
    }
    const command = words.shift()!
    assert.ok(command in options, said)
    const isOption = (word: string) => word.startsWith('-')
    const behind = words.findIndex(word => !isOption(word))
    const given = behind === -1 ? words : words.slice(0, behind)
    for (const option of given) assert.ok(options[command]!.includes(option), said)
    const service = behind === -1 ? undefined : words[behind]
    if (service !== undefined) assert.ok(service in compose(file).services, said)
  }
})
