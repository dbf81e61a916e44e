/**
 * The same program with one insert and one commit for each signup, as a service is usually written: what the batches are
 * worth. As many inserts at once as the pool of the program has connections. No setting makes the program do this.
 */

import { pino } from 'pino'
import { readConfig } from '../src/config.ts'
import { openServer } from '../src/http/server.ts'
import { memoryLimiter } from '../src/limiters/memory.ts'
import { storeBounds } from '../src/stores/batch.ts'
import { postgresStore } from '../src/stores/postgres.ts'
import { join } from '../src/waitlist/join.ts'
import type { Signup } from '../src/waitlist/signup.ts'

const CONNECTIONS = 10

const { DATABASE_URL: url, ...env } = process.env
const read = readConfig(env)
if (url === undefined || 'mistakes' in read) throw new Error(`wrong settings: ${JSON.stringify(read)}`)
const { config } = read
const log = pino()

// A store of its own for each connection, since a store commits one batch at a time.
const bounds = { ...storeBounds, batch: 1 }
const open = () => postgresStore({ url, eventName: config.eventName, log, connections: 1, bounds })
const stores = [await open(), ...(await Promise.all(Array.from({ length: CONNECTIONS - 1 }, open)))]
const waiting = stores.map(() => 0)

async function admit(signup: Signup) {
  const least = waiting.indexOf(Math.min(...waiting))
  waiting[least]!++
  try {
    return await stores[least]!.admit(signup)
  } finally {
    waiting[least]!--
  }
}

const store = { ...stores[0]!, admit }
const parts = { store, register: null, timeout: config.providerTimeout, announce() {} }
const server = await openServer(
  { ...config.server, version: '0.0.0' },
  { store, join: signup => join(signup, parts), limiter: memoryLimiter(config.server.quota), log },
)
log.info({ url: server.baseUrl }, 'waitlist is ready')
