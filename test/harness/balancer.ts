import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, Pool } from 'undici'

/** A load balancer as operators have it, on a free port. What was sent once is never sent again. */
export interface Balancer {
  readonly url: string
  /** Sends requests to this instance as soon as it is found healthy. */
  add(instance: string): Promise<void>
  /** Forgets an instance that has ended. */
  remove(instance: string): Promise<void>
  /** The instances that get requests now. */
  inRotation(): Promise<readonly string[]>
  close(): Promise<void>
}

/** Milliseconds between two questions for the health of one instance. */
export const CHECK_EVERY = 100
export const CHECK_TIMEOUT = 2_000

interface Upstream {
  readonly url: string
  readonly pool: Pool
  healthy: boolean
  removed: boolean
}

/** Node's and undici's names of "no connection": nothing was sent. */
const unconnected = new Set(['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'])

/** Takes turns, and passes over who is not healthy or refuses the connection. */
export async function startBalancer(): Promise<Balancer> {
  const upstreams = new Map<string, Upstream>()
  const checks = new Agent()
  let turn = 0

  async function watch(upstream: Upstream): Promise<void> {
    while (!upstream.removed) {
      upstream.healthy = await isHealthy(upstream.url)
      await wait(CHECK_EVERY)
    }
  }

  async function isHealthy(url: string): Promise<boolean> {
    try {
      const { statusCode, body } = await checks.request({
        origin: url,
        path: '/api/health',
        method: 'GET',
        headersTimeout: CHECK_TIMEOUT,
        bodyTimeout: CHECK_TIMEOUT,
      })
      await body.dump()
      return statusCode === 200
    } catch {
      return false
    }
  }

  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...headers } = request.headers
    const told = headers['x-forwarded-for']
    headers['x-forwarded-for'] = `${told === undefined ? '' : `${told}, `}${request.socket.remoteAddress}`
    const healthy = [...upstreams.values()].filter(({ healthy }) => healthy)
    for (let tries = healthy.length; tries > 0; tries--) {
      const { pool } = healthy[turn++ % healthy.length]!
      try {
        const answer = await pool.request({ method: request.method!, path: request.url!, headers, body })
        const { connection: _, 'keep-alive': __, ...fields } = answer.headers
        const text = await answer.body.text()
        return void response.writeHead(answer.statusCode, fields as Record<string, string>).end(text)
      } catch (error) {
        if (unconnected.has((error as NodeJS.ErrnoException).code ?? '')) continue
        return void response.writeHead(502).end(JSON.stringify({ error: `balancer: ${error}` }))
      }
    }
    response.writeHead(503).end(JSON.stringify({ error: 'balancer: no instance' }))
  }

  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    // The client is gone.
    pass(request, response).catch(() => response.destroy())
  })
  // Every visitor has a connection; hundreds may come at once.
  server.listen({ port: 0, host: '127.0.0.1', backlog: 2_048 })
  await once(server, 'listening')

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async add(url) {
      const pool = new Pool(url, { connections: 128, bodyTimeout: 20_000, headersTimeout: 20_000 })
      const upstream = { url, pool, healthy: false, removed: false }
      upstreams.set(url, upstream)
      watch(upstream)
      while (!upstream.healthy) await wait(20)
    },
    async remove(url) {
      const upstream = upstreams.get(url)
      if (upstream === undefined) return
      upstream.removed = true
      upstreams.delete(url)
      await upstream.pool.close()
    },
    async inRotation() {
      return [...upstreams.values()].filter(({ healthy }) => healthy).map(({ url }) => url)
    },
    async close() {
      for (const upstream of upstreams.values()) upstream.removed = true
      server.close()
      server.closeAllConnections()
      await Promise.all([checks.destroy(), ...[...upstreams.values()].map(({ pool }) => pool.destroy())])
    },
  }
}
