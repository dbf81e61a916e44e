import { allVendors, type SettingsTable, settings } from '../config/settings.ts'

/** All settings, a line each, with the providers' settings under their names. */
export async function settingsHelp(): Promise<string> {
  const ofVendors = Object.entries(await allVendors()).map(([vendor, { title, settings }]) => {
    return `\nWith PROVIDER=${vendor} (${title}; docs/providers.md says where the values are found):\n${rows(settings)}`
  })
  return rows(settings) + ofVendors.join('')
}

const rows = (table: SettingsTable): string =>
  Object.entries(table)
    .map(([name, { meaning, required, default: standard, unset }]) => {
      const note = required ? 'required' : (standard ?? unset)
      return `  ${name.padEnd(28)} ${meaning}${note === undefined ? '' : ` [${note}]`}\n`
    })
    .join('')
