import { randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { crc32 } from 'node:zlib'
import pg from 'pg'
import type { Server } from './processes.ts'
import type { Partitioned } from './raw.ts'

/** One database and the instances that use it. */
export interface Partition {
  readonly url: string
  readonly server: Server
}

/** A router's view of the addresses: so many slots, dealt out to the partitions, so that one can be moved by itself. */
const SLOTS = 4096
const ATTEMPTS = 4
const AT_ONCE = 32

/** The key is that of the unique constraint, src/waitlist/signup.ts: without blanks around it, in lower case. */
export const slotOf = (email: string): number => crc32(email.trim().toLowerCase()) % SLOTS

/**
 * Sends every address several times, at once, in different spellings. First to the partition that its hash says, then,
 * with other addresses, to one by chance.
 */
export async function simulatePartitions(partitions: readonly Partition[], addresses: number): Promise<Partitioned> {
  const byAddress = (email: string) => slotOf(email) % partitions.length
  const byChance = () => Math.floor(Math.random() * partitions.length)
  return {
    addresses,
    attempts: addresses * ATTEMPTS,
    routed: await send(partitions, addresses, byAddress),
    scattered: await send(partitions, addresses, byChance),
  }
}

async function send(
  partitions: readonly Partition[],
  addresses: number,
  route: (email: string) => number,
): Promise<Partitioned['routed']> {
  const run = randomBytes(6).toString('hex')
  const attempts = Array.from({ length: addresses * ATTEMPTS }, (_, i) => `${run}.${i % addresses}@example.com`)
    .map((email, i) => (i % 3 === 0 ? email.toUpperCase() : i % 3 === 1 ? ` ${email} ` : email))
    .map(email => ({ email, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  let next = 0
  let toldNew = 0
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let attempt = attempts[next++]; attempt !== undefined; attempt = attempts[next++]) {
        const { server } = partitions[route(attempt.email)]!
        if (await isNew(server.port, attempt.email, agent)) toldNew++
      }
    }),
  )
  agent.destroy()
  const keys = await Promise.all(partitions.map(({ url }) => keysOf(url, run)))
  const all = keys.flat()
  return { contacts: keys.map(({ length }) => length), inBoth: all.length - new Set(all).size, toldNew }
}

function isNew(port: number, email: string, agent: Agent): Promise<boolean> {
  const headers = { 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, method: 'POST', path: '/api/waitlist', headers, agent }, response => {
      json(response).then(answer => {
        if (response.statusCode === 200) resolve((answer as { alreadyExisted: boolean }).alreadyExisted === false)
        else reject(new Error(`should be answered 200: ${response.statusCode}`))
      }, reject)
    })
      .on('error', reject)
      .end(JSON.stringify({ name: 'Ada Lovelace', email }))
  })
}

async function keysOf(url: string, run: string): Promise<string[]> {
  const client = new pg.Client(url)
  await client.connect()
  const { rows } = await client.query('select email_key from contact where starts_with(email_key, $1)', [run])
  await client.end()
  return rows.map(row => row.email_key)
}
