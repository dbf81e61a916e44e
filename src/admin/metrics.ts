import { Gauge, type Registry } from '@prometheus-io/client'
import { contactStates, deliveryStates } from '../signup/contact.ts'
import type { Snapshot } from './server.ts'

/** Registers what `/metrics` has beside the telemetry of the process; returns what sets it from a snapshot. */
export function snapshotMetrics(registry: Registry, version: string): (snapshot: Snapshot) => void {
  const gauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
    new Gauge({ name, help, labelNames, registers: [registry] })

  gauge('waitlist_build_info', 'The version.', 'version').set({ version }, 1)
  const canStore = gauge('waitlist_store_takes_signups', 'Whether a signup could be stored.')
  const contacts = gauge('waitlist_contacts', 'Contacts by state.', 'state')
  const deliveries = gauge('waitlist_deliveries', 'Deliveries by destination and state.', 'destination', 'state')
  const oldest = gauge(
    'waitlist_delivery_oldest_seconds',
    'How long the oldest waiting delivery has been waiting; 0 when none is.',
    'destination',
  )
  const breakers = gauge(
    'waitlist_breaker_open',
    'Whether a destination is unreachable, or refuses our key or settings (misconfigured).',
    'destination',
    'reason',
  )

  return ({ takesSignups, counts, destinations }) => {
    canStore.set(Number(takesSignups))
    for (const { name: destination, outage } of destinations) {
      for (const reason of ['unreachable', 'misconfigured'] as const) {
        breakers.set({ destination, reason }, Number(outage === reason))
      }
    }
    for (const each of [contacts, deliveries, oldest]) each.reset()
    if (counts === null) return
    for (const state of contactStates) contacts.set({ state }, counts.contacts[state])
    for (const { name: destination } of destinations) {
      for (const state of deliveryStates) deliveries.set({ destination, state }, 0)
      oldest.set({ destination }, 0)
    }
    for (const { destination, state, count, oldest: since } of counts.deliveries) {
      deliveries.set({ destination, state }, count)
      if (since !== null) oldest.set({ destination }, Math.max(0, counts.at.getTime() - since.getTime()) / 1_000)
    }
  }
}
