import { type Environment, readSettings, type SettingsTable, type ValuesOf } from '../config/readers.ts'
import { type PublicEvent, publicEvents } from '../signup/contact.ts'
import type { Fields, Vendor } from './vendor.ts'

/** Every vendor, by its name in PROVIDER. Each file is loaded when it is needed. */
const files = {
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
  mailerlite: async () => (await import('./mailerlite.ts')).mailerlite,
  beehiiv: async () => (await import('./beehiiv.ts')).beehiiv,
  ghost: async () => (await import('./ghost.ts')).ghost,
}

type VendorName = keyof typeof files
export const vendorNames = Object.keys(files) as readonly VendorName[]

export const vendorOf = (name: VendorName): Promise<Vendor> => files[name]()

/** How the names of a vendor's settings begin. */
export const prefixOf = (name: VendorName): string => `${name.toUpperCase()}_`

/** A vendor and the values of its settings. */
export interface Choice {
  readonly name: VendorName
  readonly vendor: Vendor
  readonly settings: ValuesOf<SettingsTable>
  readonly fields: Fields | undefined
}

/** The settings of a vendor. Adds every mistake to `mistakes`; the result is only valid if there was none. */
export async function readProvider(
  name: VendorName,
  env: Environment,
  fields: Fields | undefined,
  mistakes: string[],
): Promise<Choice> {
  const vendor = await vendorOf(name)
  const settings = readSettings(vendor.settings, env, mistakes, `PROVIDER=${name}`)
  if (fields !== undefined && !vendor.takesFields) {
    mistakes.push(`PROVIDER_FIELDS cannot be used with ${vendor.title}, which takes no fields from us: leave it unset`)
  }
  return { name, vendor, settings, fields }
}

/** The events that start the owner's automation. */
export function automatedEvents({ vendor, settings }: Choice): readonly PublicEvent[] {
  if (vendor.notify === undefined || vendor.notifies?.(settings) === false) return []
  return vendor.namesEvents ? publicEvents : ['joined']
}
