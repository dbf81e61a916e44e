import { operatorOf, type Person } from '../app/operator.ts'
import type { Config } from '../config/config.ts'
import { fail } from './complain.ts'
import { print, toJson } from './print.ts'
import { missing, whole } from './show.ts'

/**
 * Writes everything that is stored about one person to standard output, as one JSON object: also if only their erasure
 * is known. Without anything it fails.
 */
export async function showPerson(config: Config, address: string): Promise<void> {
  const person = await (await operatorOf(config)).person(address)
  const { contact, deliveries, erasedAt } = person
  if (contact === undefined && erasedAt === undefined) return fail(missing(address, erasedAt))
  const known = {
    address,
    contact: contact === undefined ? null : whole(contact),
    deliveries,
    erasedAt: erasedAt ?? null,
    copies: copiesOf(person, config),
  }
  return print([toJson(known, 2)])
}

/** Where else the contact is, as far as is known here. */
function copiesOf({ contact, deliveries }: Person, { provider }: Pick<Config, 'provider'>): object[] {
  const { state, providerId = null } = contact ?? {}
  const there = providerId !== null || (state === 'listed' && provider !== null)
  return [
    ...(there ? [{ at: provider?.vendor ?? 'a former provider', contactId: providerId }] : []),
    ...deliveries
      .filter(({ state }) => state === 'delivered')
      .map(({ destination, settledAt }) => ({ at: destination, since: settledAt })),
  ]
}
