import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { openLoop, pipelineUnread } from '../harness/crowd.ts'
import { contactsIn } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { until } from '../harness/program.ts'
import { fixture } from '../harness/tls.ts'
import { changedCopy, slowDisk } from './builds.ts'
import { openScene } from './scene.ts'
import { gather, memoryOf, underAttack } from './under-attack.ts'

const skip =
  process.platform !== 'linux'
    ? 'it needs the addresses and /proc of Linux'
    : !isSlow && 'it takes a minute; it runs in .ci/run'

const withTls = {
  TLS_CERT_FILE: fileURLToPath(fixture('first.crt')),
  TLS_KEY_FILE: fileURLToPath(fixture('first.key')),
}

test('idle connections of one address, as many as it can open, keep nobody else out', { skip }, async t => {
  const scene = openScene(t)
  const program = await scene.start()
  await underAttack(scene, program, 200, async () => {
    const request = 'GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n'
    const joined = (socket: Socket, i: number) => void (i % 2 === 0 && socket.resume().write(request))
    const crowd = await gather(program.baseUrl, 8_000, () => '127.0.0.1', joined)
    await wait(5_000)
    crowd.leave()
  })
})

const post = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const handshake = '\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03'

/** What is sent at once, and then byte by byte, over and over. */
const slow = {
  http: [
    ['', ''],
    ['', '\r\n'],
    ['GET /api/health HTTP/1.1\r\nHost: x\r\n', ''],
    ['GET /api/health HTTP/1.1\r\n', 'X-Slow: yes\r\n'],
    [`${post}Content-Length: 1000\r\n\r\n{`, ' '],
    [`${post}Transfer-Encoding: chunked\r\n\r\n1;`, 'a'],
    [`${post}Transfer-Encoding: chunked\r\n\r\n0\r\nX: `, 'a'],
    [`${post}Content-Length: 10\r\nExpect: 100-continue\r\n\r\n`, ''],
  ],
  https: [
    ['', ''],
    [handshake, ''],
    [handshake, '\x00'],
  ],
} as const

for (const [scheme, kinds] of Object.entries(slow)) {
  test(`clients that send slowly are cut, and cost little: ${scheme}`, { skip }, async t => {
    const scene = openScene(t)
    const program = await scene.start(scheme === 'https' ? withTls : {})
    await underAttack(scene, program, 150, async () => {
      const dripping = new Map<Socket, string>()
      const joined = (socket: Socket, i: number) => {
        const [first, drip] = kinds[i % kinds.length]!
        socket.resume().write(first, 'latin1')
        if (drip !== '') dripping.set(socket, drip)
      }
      const crowd = await gather(program.baseUrl, 300 * kinds.length, i => `127.0.2.${1 + (i % 250)}`, joined)
      assert.ok(crowd.size() > 0)
      let byte = 0
      await until(async () => {
        for (const [socket, drip] of dripping) socket.write(drip[byte % drip.length]!, 'latin1')
        byte++
        await wait(450)
        return crowd.size() === 0
      })
    })
  })
}

for (const [scheme, connections] of [
  ['http', 3_000],
  ['https', 1_000],
] as const) {
  test(`clients that ask and read nothing cost at most 100 MB, with a heap of 192 MB: ${scheme}`, { skip }, async t => {
    const scene = openScene(t)
    const env = { NODE_OPTIONS: '--max-old-space-size=192', ...(scheme === 'https' ? withTls : {}) }
    const program = await scene.start(env)
    await underAttack(scene, program, 100, async () => {
      const clients = await pipelineUnread(program.baseUrl, { connections, requests: 64, signs: null })
      await wait(5_000)
      clients.close()
    })
  })
}

/** What `slowDisk` takes a second. */
const CAPACITY = 2_000
test('three times more signups than can be stored: some are refused, memory stays bounded, and all is normal soon after', {
  skip,
}, async t => {
  const scene = openScene(t)
  const program = await scene.start({}, { entry: changedCopy(t, slowDisk) })
  let acknowledged = 0
  const signups = async (rate: number, seconds: number) => {
    const outcome = await openLoop(program.baseUrl, { connections: 4_000, addresses: 40, rate, seconds })
    acknowledged += outcome.answers[200] ?? 0
    return outcome
  }
  await signups(CAPACITY / 2, 1)
  const { answers: over } = await signups(3 * CAPACITY, 4)
  assert.ok(over[500]! > 0, 'it refuses')
  await until(async () => {
    const { due, answers } = await signups(CAPACITY / 2, 1)
    return answers[200] === due
  })
  const memory = memoryOf(program.process.pid!).peak
  t.diagnostic(`served ${over[200]}, refused ${over[500]}, ${memory} MB`)
  assert.ok(memory < 500, `${memory} MB`)
  assert.equal(await program.end('SIGTERM'), 0)
  assert.ok(contactsIn(scene.path).length >= acknowledged, 'whoever was acknowledged is stored')
})
