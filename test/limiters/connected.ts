import type { TestContext } from 'node:test'
import type { Quota } from '../../src/limiters/memory.ts'
import { redisLimiter } from '../../src/limiters/redis.ts'
import { readRedisUrl } from '../../src/limiters/redis-url.ts'
import type { Limiter } from '../../src/waitlist/ports/limiter.ts'
import { until } from '../harness/program.ts'

export interface Opened extends Quota {
  readonly url: string
  /** Long where the test is not about it, since the machine may be slow. */
  readonly timeout?: number
}

/** Closed after the test. It may not be connected yet. */
export function openedLimiter(t: Pick<TestContext, 'after'>, { url, timeout = 10_000, ...quota }: Opened): Limiter {
  const limiter = redisLimiter({ location: readRedisUrl(url)!, ...quota, timeout })
  t.after(() => limiter.close())
  return limiter
}

/** Whether the server itself answers. */
export const answers = (limiter: Limiter): Promise<boolean> =>
  limiter.take('somebody else').then(
    () => true,
    () => false,
  )

/** The same, when it is connected. */
export async function connectedLimiter(t: Pick<TestContext, 'after'>, options: Opened): Promise<Limiter> {
  const limiter = openedLimiter(t, options)
  await until(() => answers(limiter))
  return limiter
}

/** Whether an attempt fails at this moment, for this reason. */
export const failsWith = (limiter: Limiter, why: RegExp): Promise<boolean> =>
  limiter.take('somebody else').then(
    () => false,
    error => why.test((error as Error).message),
  )
