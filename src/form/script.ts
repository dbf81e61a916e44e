import { readFileSync } from 'node:fs'

const textOf = (file: string): string => readFileSync(new URL(file, import.meta.url), 'utf8')

/** What the form says in English, by key. */
export const sentences: Readonly<Record<string, string>> = JSON.parse(textOf('./sentences.json'))

/** Puts a value into a script, in the place of the line that imports it. */
const having = (code: string, line: string, value: unknown) =>
  code.replace(line, () => `const ${line.split(' ')[1]} = ${JSON.stringify(value)}`)

const styled = having(textOf('./form.js'), "import style from './form.css' with { type: 'text' }", textOf('./form.css'))

/** The form as one ES module, for browsers and for bundlers. */
export const formScript = having(styled, "import english from './sentences.json' with { type: 'json' }", sentences)

/** What it imports where a challenge is asked for. */
export const challengeScript = textOf('./form-challenge.js')
