import { startBalancer } from './balancer.ts'
import { noHaproxy, startHaproxy } from './haproxy.ts'

const isSlow = process.env.WAITLIST_SLOW_TESTS !== undefined

/**
 * Every scene is seen with the field's own balancer where there is one, else with a small one, and some of it with both;
 * all of it with both in slow tests. `skip` says why one cannot be used.
 */
export const balancers = [
  { name: 'a small balancer', start: startBalancer, skip: false, hasAll: isSlow || noHaproxy !== null },
  { name: 'HAProxy', start: startHaproxy, skip: noHaproxy ?? false, hasAll: true },
] as const
