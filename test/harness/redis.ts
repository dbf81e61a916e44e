import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { endedWithUs } from './ended-with-us.ts'
import { freePort } from './port.ts'

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
  let child: ChildProcess | undefined
  const own = endedWithUs('redis', () => child?.kill('SIGKILL'))
  const port = await freePort()
  const options = ['--port', String(port), '--dir', own.folder, '--bind', '127.0.0.1', '--save', '']

  async function start() {
    const started = spawn(redisProgram!, [...options, ...more], { stdio: ['ignore', 'pipe', 'inherit'] })
    child = started
    let log = ''
    await new Promise<void>((resolve, reject) => {
      started.stdout.setEncoding('utf8').on('data', text => {
        log += text
        if (/ready to accept/i.test(log)) resolve()
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
