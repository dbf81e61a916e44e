import { type Caller, caller } from '../outbound/caller.ts'
import type { Contact } from '../waitlist/contact.ts'
import type { Provider } from '../waitlist/ports.ts'
import { emailKey } from '../waitlist/signup.ts'
import { type SettingsOf, type Vendor, type VendorName, vendors } from './catalogue.ts'
import type { Choice } from './settings.ts'
import type { Connect, VendorClient } from './vendor-client.ts'

/** Only the vendor in use is loaded. */
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

/** Opens no connection yet. `timeout`: milliseconds for one start of the automation, less than the lease. */
export async function openProvider<Name extends VendorName>(
  { vendor: name, settings }: Choice<Name>,
  timeout: number,
): Promise<Provider> {
  const { rate, promises }: Vendor = vendors[name]
  const callers: Caller[] = []
  const client = (await clients[name]())(settings, callerSettings => {
    const made = caller({ rate, ...callerSettings })
    callers.push(made)
    return made
  })
  const { automation, check } = client
  return {
    name,
    createContact: (contact, doubt, deadline) => client.createContact(lowerCase(contact), doubt, deadline),
    automation: automation && {
      name,
      repeatable: promises.repeatable,
      timeout,
      concurrency: Math.min(rate.connections, 8),
      deliver: (event, deadline) => automation({ ...event, contact: lowerCase(event.contact) }, deadline),
    },
    ...(check && { check }),
    async close() {
      await Promise.all(callers.map(each => each.close()))
    },
  }
}

/** Vendors that compare addresses do so in lower case; those that do not would keep two of one. */
const lowerCase = (contact: Contact): Contact => ({ ...contact, email: emailKey(contact.email) })
