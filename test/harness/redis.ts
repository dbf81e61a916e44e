import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { endedWithUs } from './ended-with-us.ts'
import { freePort } from './port.ts'
import { until } from './program.ts'

/** A Redis or Valkey server of this process's own. */
export interface RedisServer {
  readonly url: string
  readonly port: number
  stop(): Promise<void>
  start(): Promise<void>
  /** Takes connections and answers nothing, until it is told to go on. */
  pause(): void
  goOn(): void
  /** Runs one command as the default user, on a connection of its own. */
  command(name: string, ...values: (string | number)[]): Promise<unknown>
  /** Stops it and removes all of it. */
  remove(): Promise<void>
}

/** The program of this machine; npm has none. */
export const redisProgram: string | undefined = ['valkey-server', 'redis-server'].find(name => {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

export const noRedis = 'neither valkey-server nor redis-server is installed; .ci/run installs one'

/** `more` are options of the program, such as `['--maxmemory', '1mb']`. */
export async function startRedis(more: readonly string[] = []): Promise<RedisServer> {
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...more]
  return serverOf((port, folder) => ['--port', String(port), '--dir', folder, ...settings], /ready to accept/i)
}

/** A server that watches over `master` and what follows it, under the name `main`. It is patient, as the machine may be slow, until it is told otherwise. */
export async function startSentinel(master: RedisServer): Promise<RedisServer> {
  const settings = (port: number, folder: string) => `
port ${port}
bind 127.0.0.1
dir ${folder}
sentinel monitor main 127.0.0.1 ${master.port} 1
sentinel down-after-milliseconds main 60000
sentinel failover-timeout main 2000
`
  return serverOf((port, folder) => {
    const file = join(folder, 'sentinel.conf')
    writeFileSync(file, settings(port, folder))
    return [file, '--sentinel']
  }, /\+monitor/)
}

/** Three masters that share the slots. */
export async function startRedisCluster(): Promise<{ nodes: readonly RedisServer[]; remove(): Promise<void> }> {
  const options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000']
  const nodes = await Promise.all([0, 1, 2].map(() => startRedis(options)))
  const [first] = nodes
  for (const [at, node] of nodes.entries()) {
    const [from, end] = [at, at + 1].map(third => Math.floor((third * 16_384) / 3))
    const slots = Array.from({ length: end! - from! }, (_, slot) => from! + slot)
    await node.command('cluster', 'addslots', ...slots)
    if (node !== first) await first!.command('cluster', 'meet', '127.0.0.1', node.port)
  }
  const agrees = async (node: RedisServer) =>
    /cluster_state:ok[\s\S]*cluster_known_nodes:3/.test(String(await node.command('cluster', 'info')))
  await until(async () => (await Promise.all(nodes.map(agrees))).every(Boolean))
  return { nodes, remove: async () => void (await Promise.all(nodes.map(node => node.remove()))) }
}

type Settings = (port: number, folder: string) => readonly string[]

async function serverOf(settings: Settings, ready: RegExp): Promise<RedisServer> {
  let child: ChildProcess | undefined
  const own = endedWithUs('redis', () => child?.kill('SIGKILL'))
  // The nodes of a cluster talk to each other on a port that is 10,000 higher.
  const port = await freePort(10_000)
  const options = settings(port, own.folder)

  async function start() {
    const started = spawn(redisProgram!, options, { stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    let log = ''
    await new Promise<void>((resolve, reject) => {
      started.stdout.setEncoding('utf8').on('data', text => {
        log += text
        if (ready.test(log)) resolve()
      })
      started.once('exit', () => reject(new Error(`the server ended:\n${log}`)))
    })
  }
  async function stop() {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill('SIGKILL')
    await exited
  }
  async function remove() {
    await stop()
    own.remove()
  }
  try {
    await start()
  } catch (error) {
    await remove()
    throw error
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    start,
    stop,
    pause: () => void child?.kill('SIGSTOP'),
    goOn: () => void child?.kill('SIGCONT'),
    command: (name, ...values) => commandOf(port, name, values),
    remove,
  }
}

async function commandOf(port: number, name: string, values: readonly (string | number)[]): Promise<unknown> {
  const redis = new Redis({ port, host: '127.0.0.1', protocol: 2, enableReadyCheck: false, retryStrategy: () => null })
  try {
    return await redis.call(name, values.map(String))
  } finally {
    redis.disconnect()
  }
}
