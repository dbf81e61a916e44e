import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { generators } from '../bench/load.ts'
import { names, readOptions, usage } from '../bench/options.ts'
import { newSignup } from '../bench/scenarios.ts'
import { temporaryFolder } from './harness/folder.ts'
import { isSlow } from './harness/slow.ts'

const root = new URL('../', import.meta.url)

for (const against of [[], ['against', fileURLToPath(root)]]) {
  test(`the benchmark, run for a moment${against.length === 0 ? '' : ' against another checkout'}, prints its table and leaves nothing behind`, {
    skip: !isSlow && 'it takes all processors for seconds; it runs in .ci/run',
  }, async t => {
    const folder = temporaryFolder(t)
    const run = fileURLToPath(new URL('bench/run.ts', root))
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [run, ...against, 'refused', '--rounds', '1', '--seconds', '1', '--contacts', '500'],
      { env: { PATH: process.env.PATH, TMPDIR: folder } },
    )
    assert.match(stdout, /^\| refused body \| \d+\.\d\d \(/m)
    assert.deepEqual(
      readdirSync(folder).filter(name => name.startsWith('waitlist-')),
      [],
    )
  })
}

for (const { name, run } of generators) {
  test(`${name}: no address comes twice, not in another measurement either`, {
    skip: !isSlow && 'it takes all processors for a second; it runs in .ci/run',
  }, async t => {
    const bodies: string[] = []
    const server = createServer(async (request, response) => {
      const chunks = await request.toArray()
      bodies.push(Buffer.concat(chunks).toString())
      response.end('{}')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const load = { port, request: newSignup, status: 200, connections: 4, seconds: 1 }
    const { requests } = await run(load)
    assert.ok(bodies.length >= requests)
    await assert.rejects(run({ ...load, status: 429 }), /not every answer was 429/)

    assert.ok(bodies.length > requests)
    const emails = bodies.map(body => JSON.parse(body).email.toLowerCase())
    assert.equal(new Set(emails).size, bodies.length)
    for (const email of emails.slice(0, 100)) assert.match(email, /^[\w-]{16,}@example\.com$/)
  })
}

test('without a name, all are measured, and the usage names every scenario', () => {
  assert.deepEqual([...readOptions([]).chosen].sort(), [...names].sort())
  for (const name of names) assert.match(usage, new RegExp(`^  .*\\b${name}\\b`, 'm'))
})

test('wrong options are refused', () => {
  assert.throws(() => readOptions(['signups']), /there is no scenario signups/)
  assert.throws(() => readOptions(['against', 'signup']), /`against` takes the folder of another checkout/)
  assert.throws(() => readOptions(['against', '../before', 'large']), /`against` does not measure large/)
  assert.throws(() => readOptions(['--rounds', '0']), /--rounds must be a whole number/)
})
