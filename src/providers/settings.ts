import { type Environment, readSettings, type SettingsTable, type ValuesOf } from '../config/kinds.ts'
import { isPrivate } from '../http-client/addresses.ts'
import { type VendorName, vendorOf } from './list.ts'
import type { EventNames, Fields, Vendor } from './vendor.ts'

/** A vendor and the values of its settings. */
export interface Choice {
  readonly name: VendorName
  readonly vendor: Vendor
  readonly settings: ValuesOf<SettingsTable>
  readonly fields: Fields
}

/**
 * The settings of a vendor. Adds every mistake to `mistakes`, with the variable and where to find its value; the result is
 * only valid if there was none.
 */
export async function readProvider(
  name: VendorName,
  env: Environment,
  fields: Fields | undefined,
  events: EventNames,
  mistakes: string[],
): Promise<Choice> {
  const vendor = await vendorOf(name)
  const { values, mistakes: own } = readSettings(vendor.settings, env, `PROVIDER=${name}`)
  mistakes.push(...own)
  if (fields !== undefined && !vendor.takesFields) {
    mistakes.push(`PROVIDER_FIELDS cannot be used with ${vendor.title}, which takes no fields from us: leave it unset`)
  }
  if (own.length === 0) {
    const contradicting = vendor.contradiction?.(values, events)
    if (contradicting) mistakes.push(`${contradicting} (${vendor.title})`)
  }
  return { name, vendor, settings: values, fields: fields ?? {} }
}

/** What is allowed, but unsafe. */
export function providerWarnings({ settings }: Choice): readonly string[] {
  const warnings: string[] = []
  for (const [setting, address] of Object.entries(settings)) {
    if (!setting.endsWith('BASE_URL') || typeof address !== 'string') continue
    if (address.startsWith('http:') && !isPrivate(address)) {
      warnings.push(
        `${setting} is plain HTTP to a public address: the key and the list travel in the clear. Use https.`,
      )
    }
  }
  return warnings
}
