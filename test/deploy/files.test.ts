import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../harness/folder.ts'
import { heapFlags } from '../harness/program.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const env = { ...process.env, BASE_URL: 'https://waitlist.example.com', POSTGRES_PASSWORD: 'secret' }

/** The tool that checks each kind of file: `probe` shows whether it is here. */
const tools: readonly (readonly [file: string, probe: string, command: string])[] = [
  ['Dockerfile', 'hadolint --version', 'hadolint --no-color Dockerfile'],
  ...['compose.yaml', 'deploy/compose.instances.yaml'].flatMap(
    file =>
      [
        [file, 'check-jsonschema --version', `check-jsonschema --builtin-schema vendor.compose-spec ${file}`],
        [file, 'docker compose version', `docker compose --file ${file} config --quiet --no-env-resolution`],
      ] as const,
  ),
  ...['deploy/kubernetes.yaml', 'deploy/kubernetes.instances.yaml'].map(
    file => [file, 'kubernetes-validate --version', `kubernetes-validate --strict ${file}`] as const,
  ),
]

const run = (command: string, cwd = root) => {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, env, encoding: 'utf8' })
  return { status, output: stdout + stderr }
}
const without = (probe: string) => run(probe).status !== 0 && `there is no ${probe.split(' --')[0]} here`

for (const [file, probe, command] of tools) {
  test(`${probe.split(' ')[0]} accepts ${file}`, { skip: without(probe) }, () => {
    const { status, output } = run(command)
    assert.equal(status, 0, output)
  })
}

test('the image has the release of Node.js that the project is tested with', () => {
  const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  assert.match(readFileSync(join(root, 'Dockerfile'), 'utf8'), new RegExp(`^FROM node:${devDependencies.node}-`, 'm'))
})

test('the image and the unit start Node.js with the flags of npm start', () => {
  assert.ok(heapFlags.length > 0)
  for (const file of ['Dockerfile', 'deploy/waitlist.service']) {
    const start = /^(?:ENTRYPOINT|ExecStart).*$/m.exec(readFileSync(join(root, file), 'utf8'))?.[0] ?? ''
    assert.deepEqual(start.match(/--[\w=-]+/g), heapFlags, file)
  }
})

test('a command beside the unit has its Node.js, program, settings and folder', () => {
  const unit = readFileSync(join(root, 'deploy/waitlist.service'), 'utf8')
  const command = readFileSync(join(root, 'deploy/waitlist'), 'utf8').split('\n').at(-2)!
  const [node, program] = /^ExecStart=(\S+) .* (\S+) serve$/m.exec(unit)!.slice(1)
  const [, settings] = /^EnvironmentFile=(.*)$/m.exec(unit)!
  const [, folder] = /^StateDirectory=(.*)$/m.exec(unit)!
  assert.equal(command, `cd /var/lib/${folder} && exec ${node} --env-file=${settings} ${program} "$@"`)
})

for (const [what, hasTls, exposure] of [
  ['behind a proxy', false, 15],
  ['with its own certificate', true, 18],
] as const) {
  test(`systemd accepts the unit ${what}, and rates its exposure at ${exposure / 10} of 10 at most`, {
    skip: without('systemd-analyze --version'),
  }, t => {
    const file = join(temporaryFolder(t), 'waitlist.service')
    const unit = readFileSync(join(root, 'deploy/waitlist.service'), 'utf8')
    writeFileSync(file, unit.replace('/opt/node/bin/node', process.execPath))
    if (hasTls) {
      mkdirSync(`${file}.d`)
      copyFileSync(join(root, 'deploy/waitlist-tls.conf'), join(`${file}.d`, 'tls.conf'))
    }
    assert.deepEqual(run(`systemd-analyze verify --man=no ${file}`), { status: 0, output: '' })
    const { status, output } = run(`systemd-analyze security --offline=yes --threshold=${exposure} ${file}`)
    assert.equal(status, 0, output)
  })
}
