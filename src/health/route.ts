import type { HttpSettings } from '../http/context.ts'
import { draining, refuse, unhealthy } from '../http/errors.ts'
import { HEALTH_FRESH, HEALTH_TIMEOUT } from '../http/limits.ts'
import { type Answer, fieldList, jsonAnswer, publicFields, readableAnywhere, withFields } from '../http/response.ts'
import type { Store } from '../store/store.ts'
import { resolvesWithin } from '../waitlist/timers.ts'

/**
 * `GET /api/health`: the process and its store. Not the provider, whose outage must not take us out of rotation. The
 * store is checked at most once a second, for at most a second; `time` is always fresh, to the millisecond.
 */
export function healthRoute(
  { service, description }: Pick<HttpSettings, 'service' | 'description'>,
  { store, isDraining }: { readonly store: Pick<Store, 'check'>; isDraining(): boolean },
) {
  const fields = fieldList({ ...publicFields, 'cache-control': 'no-store' })
  const canStore = cached(() => resolvesWithin(store.check(), HEALTH_TIMEOUT), HEALTH_FRESH)

  let reportedAt = 0
  let healthy: Answer
  const report = (able: boolean): Answer => {
    if (!able) return withFields(refuse(unhealthy), readableAnywhere)
    const now = Date.now()
    if (now !== reportedAt) {
      const report = { status: 'ok', service, description, time: new Date(now).toISOString() }
      healthy = jsonAnswer(200, fields, report)
      reportedAt = now
    }
    return healthy
  }
  return (): Answer | Promise<Answer> => {
    if (isDraining()) return withFields(refuse(draining), readableAnywhere)
    const able = canStore()
    return typeof able === 'boolean' ? report(able) : able.then(report)
  }
}

/** A TTL cache of one answer, `ttl` in milliseconds. Simultaneous callers share one question. */
function cached(ask: () => Promise<boolean>, ttl: number): () => boolean | Promise<boolean> {
  let answer: boolean | Promise<boolean> = false
  let until = 0
  return () => {
    if (performance.now() < until) return answer
    until = Number.POSITIVE_INFINITY
    const asked = ask().then(result => {
      until = performance.now() + ttl
      answer = result
      return result
    })
    answer = asked
    return asked
  }
}
