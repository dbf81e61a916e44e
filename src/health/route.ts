import { setTimeout as wait } from 'node:timers/promises'
import type { Context } from '../http/context.ts'
import { draining, unhealthy } from '../http/errors.ts'
import { jsonAnswer, publicHeaders, readableAnywhere, withHeaders } from '../http/response.ts'
import type { Route } from '../http/router.ts'

/** Milliseconds for which a check of the store is good, and that it may take. */
const FRESH = 1_000
const TIMEOUT = 1_000

/**
 * `GET /api/health`: the process and its store. Not the provider, whose outage must not take us out of rotation. The
 * store is checked at most once a second, and simultaneous reports share a check.
 */
export function healthRoute({ settings: { service, description }, store, isDraining }: Context): Route {
  let check: Promise<boolean> | undefined
  let freshUntil = 0
  const canStore = () => {
    if (check !== undefined && performance.now() < freshUntil) return check
    freshUntil = Number.POSITIVE_INFINITY
    const isStored = store.check().then(
      () => true,
      () => false,
    )
    check = Promise.race([isStored, wait(TIMEOUT, false, { ref: false })]).finally(() => {
      freshUntil = performance.now() + FRESH
    })
    return check
  }
  return async () => {
    if (isDraining()) return withHeaders(draining, readableAnywhere)
    if (!(await canStore())) return withHeaders(unhealthy, readableAnywhere)
    const headers = { ...publicHeaders, 'cache-control': 'no-store' }
    return jsonAnswer(200, headers, { status: 'ok', service, description, time: new Date().toISOString() })
  }
}
