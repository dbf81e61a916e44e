import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { compact } from '../pages/frame.ts'

/** What the form says in English, by key. */
export const sentences: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL('./sentences.json', import.meta.url), 'utf8'),
)

/** Without empty lines, and with short names where nobody else has a use for them. */
function scriptIn(file: URL): string {
  const names: string[] = []
  return compact(file)
    .replaceAll(/\n+/g, '\n')
    .replaceAll(/#[a-z]\w+/gi, name => {
      if (!names.includes(name)) names.push(name)
      return `#_${names.indexOf(name).toString(36)}`
    })
}

/** Puts a value into a script, in the place of the line that imports it. */
const having = (code: string, line: string, value: unknown) =>
  code.replace(line, () => `const ${line.split(' ')[1]} = ${JSON.stringify(value)}`)

const styled = having(
  scriptIn(new URL('./form.js', import.meta.url)),
  "import style from './form.css' with { type: 'text' }",
  compact(new URL('./form.css', import.meta.url)).replaceAll(/\s*([{};:,])\s+/g, '$1'),
)

// These come from the service, with the challenge.
const { solve, unsolvable, ...always } = sentences

/** The form as one ES module, for browsers and for bundlers. */
export const formScript = having(styled, "import english from './sentences.json' with { type: 'json' }", always)

/** What it imports where a challenge is asked for. */
export const challengeScript = scriptIn(new URL('./form-challenge.js', import.meta.url))

const digest = (algorithm: string) => createHash(algorithm).update(formScript).digest()

/** The form's name while its content is this. */
export const hashedName = `form-${digest('sha256').toString('hex', 0, 8)}.js`

/** For `integrity` (W3C Subresource Integrity §3.5). */
export const integrity = `sha384-${digest('sha384').toString('base64')}`
