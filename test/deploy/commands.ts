import { readFileSync } from 'node:fs'

const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8')

/** The commands that a section of docs/deploy.md shows, in order. */
export function commandsUnder(heading: string): readonly string[] {
  const section = page.split(/^## /m).find(text => text.startsWith(`${heading}\n`)) ?? ''
  const blocks = section.matchAll(/^```sh\n(.*?)^```$/gms)
  return [...blocks].flatMap(([, block]) => block!.trim().split('\n'))
}
