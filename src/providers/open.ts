import { attempting } from '../outbound/attempt.ts'
import { type Caller, caller } from '../outbound/caller.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Provider, SharedPace } from '../waitlist/ports.ts'
import { emailKey } from '../waitlist/signup.ts'
import { type SettingsOf, type Vendor, type VendorName, vendors } from './catalogue.ts'
import type { Choice } from './settings.ts'
import type { Connect, VendorClient } from './vendor-client.ts'

/** Loads only the vendor in use. */
const clients: {
  readonly [Name in VendorName]: () => Promise<(settings: SettingsOf<Name>, connect: Connect) => VendorClient>
} = {
  loops: async () => (await import('./loops.ts')).loops,
  resend: async () => (await import('./resend.ts')).resend,
  kit: async () => (await import('./kit.ts')).kit,
  brevo: async () => (await import('./brevo.ts')).brevo,
  mailchimp: async () => (await import('./mailchimp.ts')).mailchimp,
  plunk: async () => (await import('./plunk.ts')).plunk,
  listmonk: async () => (await import('./listmonk.ts')).listmonk,
  klaviyo: async () => (await import('./klaviyo.ts')).klaviyo,
  hubspot: async () => (await import('./hubspot.ts')).hubspot,
  buttondown: async () => (await import('./buttondown.ts')).buttondown,
  customerio: async () => (await import('./customerio.ts')).customerio,
  mailerlite: async () => (await import('./mailerlite.ts')).mailerlite,
}

/**
 * Opens no connection yet. `timeout`: milliseconds for one attempt from its first call, far less than the lease.
 * `shared`: lets several instances keep the vendor's rate together; closed with the provider.
 */
export async function openProvider<Name extends VendorName>(
  { vendor: name, settings }: Choice<Name>,
  timeout: number,
  shared?: SharedPace | null,
): Promise<Provider> {
  const { rate, promises }: Vendor = vendors[name]
  const callers: Caller[] = []
  const client = (await clients[name]())(settings, callerSettings => {
    const made = caller({ rate, shared: shared ?? undefined, ...callerSettings })
    callers.push(made)
    return made
  })
  const { automation, check } = client
  return {
    name,
    timeout,
    createContact: (contact, doubt, signal, mayBegin) =>
      attempting(timeout, signal, attempt => client.createContact(lowerCase(contact), doubt, attempt), mayBegin),
    automation: automation && {
      name: `${name}-automation`,
      repeatable: promises.repeatable,
      timeout,
      concurrency: Math.min(rate.connections, 8),
      deliver: (event, signal) =>
        attempting(timeout, signal, attempt => automation({ ...event, contact: lowerCase(event.contact) }, attempt)),
    },
    check: check && (signal => attempting(timeout, signal, check)),
    async close() {
      await Promise.all([...callers, shared].map(each => each?.close()))
    },
  }
}

/** Some vendors compare addresses with their case, and would keep the same address twice. */
const lowerCase = (contact: Contact): Contact => ({ ...contact, email: emailKey(contact.email) })
