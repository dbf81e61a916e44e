import { readFileSync, writeFileSync } from 'node:fs'
import type { SettingsTable } from '../src/config/readers.ts'
import { settings } from '../src/config/settings.ts'

/** Writes what is generated from the program's own tables: `npm run generate`. With `--check` it only says what is stale. */

const settingsTable = Object.entries<SettingsTable[string]>(settings).map(
  ([name, { meaning, default: standard }]) =>
    `| \`${name}\` | ${standard === undefined ? '–' : `\`${standard}\``} | ${meaning} |\n`,
)

const envExample = Object.entries<SettingsTable[string]>(settings).map(
  ([name, { meaning, default: standard = '' }]) => `# ${meaning}\n#${name}=${standard}\n`,
)

/** The text of a file with everything after the end of a marker replaced. */
const after = (text: string, marker: string, generated: string): string => {
  const at = text.indexOf(marker)
  if (at === -1) throw new Error(`no ${JSON.stringify(marker)}`)
  return text.slice(0, at + marker.length) + generated
}

const files: Readonly<Record<string, (text: string) => string>> = {
  'docs/settings.md': text => after(text, '|---|---|---|\n', settingsTable.join('')),
  '.env.example': text => after(text, '\n\n', envExample.join('\n')),
}

const stale = Object.entries(files).filter(([path, make]) => {
  const url = new URL(`../${path}`, import.meta.url)
  const text = readFileSync(url, 'utf8')
  const fresh = make(text)
  if (fresh !== text && !process.argv.includes('--check')) writeFileSync(url, fresh)
  return fresh !== text
})
if (stale.length > 0 && process.argv.includes('--check')) {
  console.error(`Stale: ${stale.map(([path]) => path).join(', ')}. Run npm run generate.`)
  process.exitCode = 1
}
