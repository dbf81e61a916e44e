import { settings, type Vendor, vendorNames, vendors } from '../settings.ts'

/** All settings, a line each; those of the providers under their names. */
export function settingsHelp(): string {
  const own = Object.entries(settings).map(([name, setting]) =>
    row(name, setting.meaning, 'default' in setting ? setting.default : undefined),
  )
  const ofVendors = vendorNames.map(vendor => {
    const { title, settings }: Vendor = vendors[vendor]
    const rows = Object.entries(settings).map(([name, { meaning, required, default: standard }]) =>
      row(name, meaning, required ? 'required' : standard),
    )
    return `\nWith PROVIDER=${vendor} (${title}; docs/providers.md says where the values are found):\n${rows.join('')}`
  })
  return own.join('') + ofVendors.join('')
}

const row = (name: string, meaning: string, note: string | undefined): string =>
  `  ${name.padEnd(28)} ${meaning}${note === undefined ? '' : ` [${note}]`}\n`
