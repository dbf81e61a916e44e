import { type Environment, given, readSettings } from '../config/kinds.ts'
import { isMetadata, isPrivate } from '../outbound/addresses.ts'
import { type SettingsOf, type Vendor, type VendorName, vendorNames, vendors } from './catalogue.ts'

/** A vendor and the values of its settings. */
export interface Choice<Name extends VendorName = VendorName> {
  readonly vendor: Name
  readonly settings: SettingsOf<Name>
}

/**
 * The settings of a vendor. Adds every mistake to `mistakes`, with the variable and where to find its value; the result is
 * only valid if there was none.
 */
export function readProvider(name: VendorName, env: Environment, eventName: string, mistakes: string[]): Choice {
  const { title, settings, contradiction }: Vendor = vendors[name]
  const { values, mistakes: own } = readSettings(settings, env, `PROVIDER=${name}`)
  mistakes.push(...own)
  if (own.length > 0) {
    // A missing setting may be a misspelt one.
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

/** What is allowed, but may be unintended or unsafe. `chosen` is null without a provider. */
export function providerWarnings(
  chosen: VendorName | null,
  existing: 'leave' | 'join',
  env: Environment,
): readonly string[] {
  const warnings: string[] = []
  for (const name of vendorNames) {
    const known = Object.keys(vendors[name].settings)
    if (name !== chosen) {
      const unused = known.filter(setting => given(env, setting) !== undefined)
      const have = unused.length === 1 ? 'has' : 'have'
      if (unused.length > 0) warnings.push(`${unused.join(', ')} ${have} no effect, since PROVIDER is not ${name}.`)
      continue
    }
    const { title, settings, joins }: Vendor = vendors[name]
    if (existing === 'join' && !joins.some(setting => given(env, setting) !== undefined)) {
      const what = joins.length === 0 ? `${title} has nothing to join` : `none of ${joins.join(', ')} is set`
      warnings.push(`PROVIDER_EXISTING=join has no effect: ${what}.`)
    }
    warnings.push(...misspelt(name, env), ...readSettings(settings, env).idle)
    for (const setting of known.filter(each => each.endsWith('BASE_URL'))) {
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
  }
  return warnings
}
