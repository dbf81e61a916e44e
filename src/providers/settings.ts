import { type Environment, given, readSettings, type SettingsTable, type ValuesOf } from '../config/kinds.ts'
import { isMetadata, isPrivate } from '../outbound/addresses.ts'
import { prefixOf, type VendorName, vendorNames, vendorOf } from './list.ts'
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
  if (own.length > 0) {
    // A missing setting may be a misspelt one.
    mistakes.push(...misspelt(name, vendor, env))
  } else {
    const contradicting = vendor.contradiction?.(values, events)
    if (contradicting) mistakes.push(`${contradicting} (${vendor.title})`)
  }
  return { name, vendor, settings: values, fields: fields ?? {} }
}

function misspelt(name: VendorName, { settings }: Vendor, env: Environment): readonly string[] {
  const known = Object.keys(settings)
  return Object.keys(env)
    .filter(each => each.startsWith(prefixOf(name)) && !known.includes(each))
    .map(each => `${each} is no setting of Waitlist; ${name} has ${known.join(', ')}.`)
}

/** What is allowed, but may be unintended or unsafe. `choice` is null without a provider. */
export async function providerWarnings(
  choice: Choice | null,
  existing: 'leave' | 'join',
  env: Environment,
): Promise<readonly string[]> {
  const warnings: string[] = []
  for (const name of vendorNames) {
    if (name === choice?.name) warnings.push(...warningsFor(choice, existing, env))
    else if (hasSettingOf(name, env)) {
      const { settings } = await vendorOf(name)
      const unused = Object.keys(settings).filter(setting => given(env, setting) !== undefined)
      const have = unused.length === 1 ? 'has' : 'have'
      if (unused.length > 0) warnings.push(`${unused.join(', ')} ${have} no effect, since PROVIDER is not ${name}.`)
    }
  }
  return warnings
}

/** Whether a variable has the vendor's prefix. Only then is its file worth loading. */
const hasSettingOf = (name: VendorName, env: Environment): boolean =>
  Object.keys(env).some(each => each.startsWith(prefixOf(name)))

function warningsFor({ name, vendor }: Choice, existing: 'leave' | 'join', env: Environment): readonly string[] {
  const { title, settings, joins } = vendor
  const warnings: string[] = []
  if (existing === 'join' && !joins.some(setting => given(env, setting) !== undefined)) {
    const what = joins.length === 0 ? `${title} has nothing to join` : `none of ${joins.join(', ')} is set`
    warnings.push(`PROVIDER_EXISTING=join has no effect: ${what}.`)
  }
  warnings.push(...misspelt(name, vendor, env))
  for (const setting of Object.keys(settings).filter(each => each.endsWith('BASE_URL'))) {
    const address = given(env, setting)
    if (address === undefined) continue
    if (isMetadata(address)) {
      warnings.push(
        `${setting} is a link-local or metadata address, where clouds keep credentials: the key and the list are sent there.`,
      )
    }
    if (address.startsWith('http:') && !isPrivate(address)) {
      warnings.push(
        `${setting} is plain HTTP to a public address: the key and the list travel in the clear. Use https.`,
      )
    }
  }
  return warnings
}
