import { LEASE } from '../waitlist/ports/outbox.ts'

/** The parts of an examination that are the same for both engines. */

export const ORPHANS =
  'select count(*) as n from delivery where not exists (select 1 from contact where contact.number = delivery.contact)'

/** Milliseconds. A running service takes over what is due within a minute. */
const LATE = 2 * LEASE

/** `ago`: makes the time so many milliseconds ago, in the engine's form. */
export const staleLeases = (ago: (milliseconds: number) => string): string =>
  `select count(*) as n from delivery where state = 'waiting' and token is not null and due_at < ${ago(LATE)}`
