import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent as HttpAgent, request as requestHttp } from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { connect, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { load } from '../harness/load.ts'
import { type Program, until } from '../harness/program.ts'
import { ca } from '../harness/tls.ts'
import { assertKept, type Scene } from './scene.ts'

/** Descriptors that may be open afterwards and were not before, such as a file that is read. */
const SLACK = 4

/**
 * Attacks the program while an honest client uses it: each of that client's requests is answered with 200, the attack costs at
 * most so many megabytes, its connections are gone in the end, and everything acknowledged is kept.
 */
export async function underAttack(
  scene: Scene,
  program: Program,
  mostMemory: number,
  attack: () => Promise<unknown>,
): Promise<void> {
  const { baseUrl, process: child } = program
  const pid = child.pid!
  await warmUp(scene, baseUrl)
  const before = { memory: memoryOf(pid).now, descriptors: descriptorsOf(pid) }
  const honest = honestClient(scene, baseUrl)
  await attack()
  const failures = await honest.stop()
  assert.equal(child.exitCode ?? child.signalCode, null, `the process ended: ${program.stderr().slice(-300)}`)
  const cost = Math.round(memoryOf(pid).peak - before.memory)
  scene.t.diagnostic(`the attack cost ${cost} MB`)
  assert.deepEqual(failures, [], 'the honest client was not served')
  assert.ok(cost <= mostMemory, `it cost ${cost} MB`)
  await until(() => descriptorsOf(pid) <= before.descriptors + SLACK)
  assert.equal(await program.end('SIGTERM'), 0)
  assertKept(scene)
}

/** So that the cost of an attack is not that of code that is compiled, and of files that are opened, once. */
async function warmUp({ ledger }: Scene, baseUrl: string): Promise<void> {
  const done = ledger.acknowledged + 1_000
  const agent = baseUrl.startsWith('https:')
    ? new HttpsAgent({ keepAlive: true, ca })
    : new HttpAgent({ keepAlive: true })
  await load({ ledger, clients: 8, agent, round: 0, to: () => baseUrl, goesOn: () => ledger.acknowledged < done })
}

/** Signs up, and asks for the health, in turn, each time on a new connection, from an address of its own. */
function honestClient({ ledger }: Scene, baseUrl: string): { stop(): Promise<string[]> } {
  const failures: string[] = []
  const pending: Promise<void>[] = []
  let isOver = false
  const send = async (number: number) => {
    const email = number % 2 === 0 ? `honest-${number}@example.com` : null
    const what = email ?? 'health'
    try {
      const answer = await ask(baseUrl, email)
      if (email !== null) ledger.note(email, answer)
      if (answer.status !== 200) failures.push(`${what}: ${answer.status}`)
    } catch (error) {
      if (email !== null) ledger.note(email, null)
      failures.push(`${what}: ${(error as Error).message}`)
    }
  }
  const sending = (async () => {
    for (let i = 0; !isOver; i++) {
      pending.push(send(i))
      await wait(50)
    }
  })()
  return {
    async stop() {
      isOver = true
      await sending
      await Promise.all(pending)
      return failures
    },
  }
}

function ask(baseUrl: string, email: string | null): Promise<{ status: number; alreadyExisted: boolean }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; alreadyExisted: boolean }>()
  const request = (baseUrl.startsWith('https:') ? requestHttps : requestHttp)(
    `${baseUrl}/api/${email === null ? 'health' : 'waitlist'}`,
    {
      method: email === null ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json' },
      agent: false,
      localAddress: '127.0.0.99',
      ca,
    },
    async response => {
      const chunks = await response.toArray().catch(reject)
      if (chunks !== undefined) {
        const { alreadyExisted } = JSON.parse(Buffer.concat(chunks).toString())
        resolve({ status: response.statusCode!, alreadyExisted })
      }
    },
  )
  request.on('error', reject)
  request.end(email === null ? undefined : JSON.stringify({ name: 'Honest Client', email }))
  return promise
}

/** Megabytes; Linux only. */
export function memoryOf(pid: number): { now: number; peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const megabytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)![1]) / 1_000
  return { now: megabytes('VmRSS'), peak: megabytes('VmHWM') }
}

const descriptorsOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length

export interface Crowd {
  size(): number
  leave(): void
}

/** Opens connections, 200 at a time; resolves when each was tried. */
export async function gather(
  baseUrl: string,
  count: number,
  from: (number: number) => string,
  joined: (socket: Socket, number: number) => void,
): Promise<Crowd> {
  const open = new Set<Socket>()
  const port = Number(new URL(baseUrl).port)
  const enter = (number: number) =>
    new Promise<void>(resolve => {
      const socket = connect({ host: '127.0.0.1', port, noDelay: true, localAddress: from(number) }, () => {
        open.add(socket)
        joined(socket, number)
        resolve()
      })
      socket.on('error', () => {}).on('end', () => socket.destroy())
      socket.once('close', () => {
        open.delete(socket)
        resolve()
      })
    })
  for (let first = 0; first < count; first += 200) {
    await Promise.all(Array.from({ length: Math.min(200, count - first) }, (_, i) => enter(first + i)))
  }
  return {
    size: () => open.size,
    leave() {
      for (const socket of open) socket.destroy()
    },
  }
}
