import { startBalancer } from './balancer.ts'
import { noHaproxy, startHaproxy } from './haproxy.ts'
import { isSlow } from './slow.ts'

/**
 * Every scene is seen with the field's own balancer where it is installed, else with a small one; in slow tests with
 * both. `skip` says why one is not used.
 */
export const balancers = [
  {
    name: 'a small balancer',
    start: startBalancer,
    skip: !isSlow && noHaproxy === null && 'HAProxy is installed; slow tests use both',
  },
  { name: 'HAProxy', start: startHaproxy, skip: noHaproxy ?? false },
] as const
