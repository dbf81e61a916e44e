import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Agent } from 'undici'
import { gather, leave, pipelineUnread } from '../harness/crowd.ts'
import { skipSlow } from '../harness/environment.ts'
import { load, visit } from '../harness/load.ts'
import { until } from '../harness/program.ts'
import { ca, fixture as tlsFile } from '../harness/tls.ts'
import { changedCopy, slowDisk } from './builds.ts'
import { assertKept, type Fixture, openFixture } from './fixture.ts'

const skip = process.platform !== 'linux' ? 'it needs the addresses and /proc of Linux' : skipSlow

const withTls = {
  TLS_CERT_FILE: fileURLToPath(tlsFile('first.crt')),
  TLS_KEY_FILE: fileURLToPath(tlsFile('first.key')),
}

interface Attack {
  readonly what: string
  /** Megabytes that it may cost. */
  readonly most: number
  readonly env?: Record<string, string>
  readonly run: (baseUrl: string) => Promise<unknown>
}

async function idle(baseUrl: string): Promise<void> {
  const request = 'GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n'
  const joined = (socket: Socket, i: number) => void (i % 2 === 0 && socket.resume().write(request))
  const crowd = await gather(baseUrl, { count: 8_000, joined })
  await wait(5_000)
  leave(crowd)
}

const post = 'POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
const handshake = '\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03'

/** What is sent at once, and then byte by byte, over and over. */
const pieces = {
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

const slow = (kinds: readonly (readonly [first: string, drip: string])[]) => async (baseUrl: string) => {
  const dripping = new Map<Socket, string>()
  const crowd = await gather(baseUrl, {
    count: 300 * kinds.length,
    from: i => `127.0.2.${1 + (i % 250)}`,
    joined(socket, i) {
      const [first, drip] = kinds[i % kinds.length]!
      socket.resume().write(first, 'latin1')
      if (drip !== '') dripping.set(socket, drip)
    },
  })
  assert.ok(crowd.size > 0)
  let byte = 0
  await until(async () => {
    for (const [socket, drip] of dripping) socket.write(drip[byte % drip.length]!, 'latin1')
    byte++
    await wait(400)
    return crowd.size === 0
  })
}

const unread = (connections: number) => async (baseUrl: string) => {
  for (const requests of [64, 8]) {
    const crowd = await pipelineUnread(baseUrl, connections, requests)
    await wait(3_000)
    leave(crowd)
  }
}

const smallHeap = { NODE_OPTIONS: '--max-old-space-size=192' }
const attacks: readonly Attack[] = [
  { what: 'idle connections of one address, as many as it can open', most: 200, run: idle },
  { what: 'clients that send slowly', most: 150, run: slow(pieces.http) },
  { what: 'clients that send slowly over TLS', most: 150, env: withTls, run: slow(pieces.https) },
  { what: 'clients that read nothing', most: 100, env: smallHeap, run: unread(3_000) },
  { what: 'clients that read nothing over TLS', most: 100, env: { ...smallHeap, ...withTls }, run: unread(1_000) },
]

for (const { what, most, env, run } of attacks) {
  test(`${what} keep nobody else out, cost at most ${most} MB, and are gone in the end`, { skip }, async t => {
    const fixture = openFixture(t)
    const { ledger, start } = fixture
    const program = await start(env)
    const { baseUrl } = program
    const pid = program.process.pid!
    // So that the cost of an attack is not that of code that is compiled, and of files that are opened, once.
    const agent = new Agent({ connections: 8, connect: { ca } })
    await load({
      ledger,
      clients: 8,
      agent,
      round: 0,
      to: () => baseUrl,
      goesOn: answer => answer?.status === 200 && ledger.acknowledged < 1_000,
    })
    const before = { memory: memoryOf(pid).now, descriptors: descriptorsOf(pid) }

    let isOver = false
    const honest = honestClient(fixture, baseUrl, () => isOver)
    await run(baseUrl).finally(() => {
      isOver = true
    })
    assert.deepEqual(await honest, [], 'the honest client was not served')
    const cost = Math.round(memoryOf(pid).peak - before.memory)
    t.diagnostic(`it cost ${cost} MB`)
    assert.ok(cost <= most, `it cost ${cost} MB`)
    // Some files are opened when they are first read.
    await until(() => descriptorsOf(pid) <= before.descriptors + 4)
    assert.equal(await program.end('SIGTERM'), 0)
    assertKept(fixture)
  })
}

/** Signs up twenty times a second, each time on a new connection, from an address of its own. @returns what failed. */
async function honestClient({ ledger }: Fixture, baseUrl: string, isOver: () => boolean): Promise<string[]> {
  const agent = new Agent({ pipelining: 0, localAddress: '127.0.0.99', connect: { ca } })
  const failures: string[] = []
  const signUp = async (email: string) => {
    const answer = await visit({ baseUrl }, email, {}, agent)
    ledger.note(email, answer)
    if (answer?.status !== 200) failures.push(`${email}: ${answer?.status}`)
  }
  const pending: Promise<void>[] = []
  for (let i = 0; !isOver(); i++) {
    pending.push(signUp(`honest-${i}@example.com`))
    await wait(50)
  }
  await Promise.all(pending)
  await agent.close()
  return failures
}

/** Megabytes. */
function memoryOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const megabytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)![1]) / 1_000
  return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') }
}

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

/** What `slowDisk` takes a second. */
const CAPACITY = 500
const ADDRESSES = 40

test('three times more signups than can be stored: some are refused, memory stays bounded, and all is normal soon after', {
  skip,
}, async t => {
  const fixture = openFixture(t)
  const program = await fixture.start({}, { entry: changedCopy(t, slowDisk) })
  const agents = Array.from(
    { length: ADDRESSES },
    (_, i) => new Agent({ localAddress: `127.0.${i}.1`, connections: 100 }),
  )
  t.after(() => Promise.all(agents.map(agent => agent.destroy())))
  let sent = 0
  const signUp = async () => {
    const number = sent++
    const email = `visitor-${number}@quixote.example`
    const answer = await visit(program, email, {}, agents[number % ADDRESSES])
    fixture.ledger.note(email, answer)
    return answer?.status
  }
  /** Sends by schedule, however slow the answers are. @returns how many were answered with 200 and 500. */
  const signUps = async (rate: number, seconds: number) => {
    const pending: Promise<number | undefined>[] = []
    const began = performance.now()
    while (pending.length < rate * seconds) {
      if (performance.now() < began + (pending.length * 1_000) / rate) await wait(1)
      else pending.push(signUp())
    }
    const statuses = await Promise.all(pending)
    const [taken, refused] = [200, 500].map(status => statuses.filter(each => each === status).length)
    assert.equal(taken! + refused!, pending.length, 'everybody is answered')
    return { taken, refused }
  }
  await signUps(CAPACITY / 2, 1)
  const over = await signUps(3 * CAPACITY, 6)
  assert.ok(over.refused! > 0, 'it refuses')
  assert.ok(over.taken! > 3 * CAPACITY, `it goes on serving: ${over.taken}`)
  await until(async () => (await signUps(CAPACITY / 2, 1)).refused === 0)
  const memory = memoryOf(program.process.pid!).peak
  t.diagnostic(`${JSON.stringify(over)}, ${memory} MB`)
  assert.ok(memory < 500, `${memory} MB`)
  assert.equal(await program.end('SIGTERM'), 0)
  assertKept(fixture)
})
