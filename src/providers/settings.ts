import { isPrivate } from '../outbound/private-address.ts'
import { type SettingsOf, type Vendor, type VendorName, vendorNames, vendors } from './catalogue.ts'

/** A vendor and the values of its settings. */
export interface Choice<Name extends VendorName = VendorName> {
  readonly vendor: Name
  readonly settings: SettingsOf<Name>
}

type Environment = Readonly<Record<string, string | undefined>>

/** An empty value counts as unset. */
const given = (env: Environment, name: string): string | undefined => env[name]?.trim() || undefined

/** The vendor that has this setting. */
export const vendorOf = (setting: string): VendorName | undefined =>
  vendorNames.find(name => Object.hasOwn(vendors[name].settings, setting))

/**
 * The settings of a vendor. Adds every mistake to `mistakes`, naming the variable and where its value is found; the
 * result is of use only when there was none.
 */
export function readProvider(name: VendorName, env: Environment, eventName: string, mistakes: string[]): Choice {
  const { title, settings, contradiction }: Vendor = vendors[name]
  const before = mistakes.length
  const values: Record<string, unknown> = {}
  for (const [setting, { meaning, where, required, default: standard, allowed, read }] of Object.entries(settings)) {
    const text = given(env, setting) ?? standard
    if (text === undefined) {
      if (required)
        mistakes.push(`${setting} is missing: PROVIDER=${name} needs it. ${meaning} Where to find it: ${where}`)
      continue
    }
    const value = read(text)
    if (value === undefined) mistakes.push(`${setting} ${allowed}. ${meaning} Where to find it: ${where}`)
    else values[setting] = value
  }
  if (mistakes.length > before) {
    // Somebody who misspelt a setting misses one.
    mistakes.push(...misspelt(name, env))
  } else {
    const contradicting = contradiction?.(values, eventName)
    if (contradicting) mistakes.push(`${contradicting} (${title})`)
  }
  return { vendor: name, settings: values as SettingsOf<VendorName> }
}

function misspelt(name: VendorName, env: Environment): readonly string[] {
  const known = Object.keys(vendors[name].settings)
  return Object.keys(env)
    .filter(each => each.startsWith(`${name.toUpperCase()}_`) && !known.includes(each))
    .map(each => `${each} is no setting of Waitlist; ${name} has ${known.join(', ')}.`)
}

/** What is allowed, but perhaps not meant or not safe. `chosen` is null when there is no provider. */
export function providerWarnings(chosen: VendorName | null, env: Environment): readonly string[] {
  const warnings: string[] = []
  for (const name of vendorNames) {
    const known = Object.keys(vendors[name].settings)
    if (name !== chosen) {
      const unused = known.filter(setting => given(env, setting) !== undefined)
      if (unused.length > 0) warnings.push(`${unused.join(', ')} has no effect, since PROVIDER is not ${name}.`)
      continue
    }
    warnings.push(...misspelt(name, env))
    for (const setting of known.filter(each => each.endsWith('BASE_URL'))) {
      const address = given(env, setting)
      if (address?.startsWith('http:') && !isPrivate(address)) {
        warnings.push(
          `${setting} is plain HTTP to a public address: the key and the list travel in the clear. Use https.`,
        )
      }
    }
  }
  return warnings
}
