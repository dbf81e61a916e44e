import { startBalancer } from './balancer.ts'
import { noHaproxy, startHaproxy } from './haproxy.ts'

/** Every scene is seen with the field's own balancer where it is installed, else with a small one. `skip` says why one is not used. */
export const balancers = [
  {
    name: 'a small balancer',
    start: startBalancer,
    skip: noHaproxy === null && 'HAProxy is installed',
  },
  { name: 'HAProxy', start: startHaproxy, skip: noHaproxy ?? false },
] as const
