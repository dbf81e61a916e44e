import { type Environment, readSettings, type SettingsTable, type ValuesOf } from '../config/readers.ts'
import { isPrivate } from '../http-client/addresses.ts'
import { type VendorName, vendorOf } from './list.ts'
import type { Fields, Vendor } from './vendor.ts'

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

/** What is allowed, but unsafe. */
export const providerWarnings = ({ settings }: Choice): readonly string[] =>
  Object.entries(settings)
    .filter(([setting]) => setting.endsWith('BASE_URL'))
    .filter(([, url]) => typeof url === 'string' && url.startsWith('http:') && !isPrivate(url))
    .map(
      ([setting]) =>
        `${setting} is plain HTTP to a public address: the key and the list travel in the clear. Use https.`,
    )
