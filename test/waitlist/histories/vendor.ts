import type { Destination } from '../../../src/waitlist/ports/destination.ts'
import type { Provider } from '../../../src/waitlist/ports/provider.ts'
import type { Contact, JoinedEvent } from '../../../src/waitlist/rules/contact.ts'
import { emailKey } from '../../../src/waitlist/rules/signup.ts'
import { type Line, line, type Witness } from './line.ts'
import type { Time } from './time.ts'

/** What a vendor can promise. */
export interface Abilities {
  /** It tells a contact that we made from one that the owner made. */
  readonly recognisesOwn: boolean
  /** Milliseconds for which it recognises a repeated start of its automation. */
  readonly repeatable: number
}

/** A vendor with a list and an automation, in this process. */
export interface Vendor {
  readonly name: VendorName
  readonly automation: Destination
  readonly provider: Provider
  readonly creating: Line
  readonly starting: Line
  /** Who made the contact of this address: 'owner', or the id that we gave it; undefined: there is none. */
  madeBy(email: string): string | undefined
  /** How often the automation was started for it. */
  starts(email: string): number
  /** The owner adds a contact by hand. */
  add(email: string): void
  refuses(email: string, refuses: boolean): void
  /** Whether it ever refused this address to us. */
  hasRefused(email: string): boolean
}

/** The one of the first day, and the one that the owner may change to. */
export const vendorNames = ['vendor', 'rival'] as const
export type VendorName = (typeof vendorNames)[number]
/** The destination that starts a vendor's automation. */
export const automationOf = (name: VendorName) => `${name}'s automation` as const

export function scriptedVendor(
  name: VendorName,
  time: Time,
  witness: Witness,
  { recognisesOwn, repeatable }: Abilities,
  timeout: number,
): Vendor {
  const made = new Map<string, string>()
  const starts = new Map<string, number>()
  const startedAt = new Map<string, number>()
  const refusing = new Set<string>()
  /** Addresses, and the ids that we gave to them. */
  const refused = new Set<string>()
  const creating = line('vendor', time, witness, timeout)
  const starting = line('automation', time, witness, timeout)

  function create({ id, email }: Contact, doubt: boolean) {
    const key = emailKey(email)
    const maker = made.get(key)
    if (maker !== undefined) {
      const own = maker === id
      witness.seen(`existing, ${own ? 'ours' : 'not ours'}, ${doubt ? 'in doubt' : 'without doubt'}`)
      return { is: 'existing' as const, ours: doubt && recognisesOwn ? own : undefined }
    }
    // A call that comes late does not overtake the refusal of the same contact.
    if (refusing.has(key) || refused.has(id)) {
      refused.add(key).add(id)
      witness.seen('refused')
      return { is: 'refused' as const, reason: 'it does not like it' }
    }
    made.set(key, id)
    witness.seen('created')
    return { is: 'created' as const, providerId: `at-the-vendor-${made.size}` }
  }

  function start({ id, contact }: JoinedEvent) {
    const key = emailKey(contact.email)
    if (!made.has(key)) witness.fault(`the automation is started for ${key}, who is not on the list`)
    const at = startedAt.get(id)
    if (at !== undefined && time.now() - at < repeatable) witness.seen('automation: recognised a repetition')
    else {
      starts.set(key, (starts.get(key) ?? 0) + 1)
      startedAt.set(id, time.now())
    }
    return { is: 'delivered' as const }
  }

  const automation: Destination = {
    name: automationOf(name),
    repeatable,
    timeout,
    concurrency: 8,
    deliver: (event, leave) => starting.carry(event.id, leave, () => start(event)),
  }

  return {
    name,
    automation,
    creating,
    starting,
    madeBy: email => made.get(email),
    starts: email => starts.get(email) ?? 0,
    add: email => void made.set(email, made.get(email) ?? 'owner'),
    refuses: (email, refuses) => void (refuses ? refusing.add(email) : refusing.delete(email)),
    hasRefused: email => refused.has(email),
    provider: {
      name,
      timeout,
      remove: async () => ({ is: 'absent' }),
      check: async () => null,
      automation,
      createContact(contact, doubt, leave) {
        const key = emailKey(contact.email)
        if (made.get(key) === contact.id && !doubt) witness.fault(`${key} was made by us, and we do not doubt it`)
        return creating.carry(key, leave, () => create(contact, doubt))
      },
      close: async () => {},
    },
  }
}
