import { rmSync } from 'node:fs'
import { Redis } from 'ioredis'
import { familyMemory, familyTime } from './resources.ts'

export interface RedisCounters {
  /** Seconds of processor time. */
  cpu(): number
  /** Bytes of memory of the process. */
  memory(): number
  /** So many signups were counted with it. */
  signups(more: number): void
  /** For each of these signups: commands, bytes both ways, and bytes of memory for each client it remembers. */
  perSignup(): Promise<{ readonly commands: number; readonly bytes: number; readonly perClient: number }>
  close(): void
}

/** Asks the server itself. */
export async function redisCounters(url: string): Promise<RedisCounters> {
  const redis = new Redis(url)
  redis.on('error', () => {})
  const info = async (): Promise<Record<string, string>> =>
    Object.fromEntries(
      [...(await redis.info('everything')).matchAll(/^(\w+):(.*)\r$/gm)].map(([, name, is]) => [name, is]),
    )
  const takes = ({ cmdstat_evalsha: stat = '' }: Record<string, string>) => Number(/calls=(\d+)/.exec(stat)?.[1] ?? 0)
  const bytes = (all: Record<string, string>) => Number(all.total_net_input_bytes) + Number(all.total_net_output_bytes)
  const first = await info()
  const pid = Number(first.process_id)
  const [, folder] = (await redis.config('GET', 'dir')) as [string, string]
  // Where this process ends before its time.
  const kill = () => {
    process.kill(pid, 'SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', kill)
  let signups = 0

  return {
    cpu: () => familyTime(pid),
    memory: () => familyMemory(pid),
    signups(more) {
      signups += more
    },
    close() {
      process.off('exit', kill)
      redis.disconnect()
    },
    async perSignup() {
      const last = await info()
      const keys = await redis.dbsize()
      const memory = Number(last.used_memory) - Number(first.used_memory)
      return {
        commands: Number(((takes(last) - takes(first)) / signups).toFixed(3)),
        bytes: Math.round((bytes(last) - bytes(first)) / signups),
        perClient: keys === 0 ? 0 : Math.round(memory / keys),
      }
    },
  }
}
