import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const src = fileURLToPath(new URL('../src', import.meta.url))

/** What everybody may import: folders, and single files of features. */
const shared = [
  'config',
  'store',
  'http',
  'delivery',
  'http-client',
  'mail',
  'messages',
  'signup/contact.ts',
  'signup/parse.ts',
  'operate/output.ts',
]
/** They know all of them: `config` has their settings. */
const composers = ['app', 'main.ts', 'config']

const roomOf = (file: string): string => file.split('/')[0]!
const isShared = (file: string): boolean => shared.includes(roomOf(file)) || shared.includes(file)

/** Every import of a file of ours, but for types, as paths below `src`. */
function* imports(): Generator<readonly [from: string, to: string]> {
  for (const from of globSync('**/*.ts', { cwd: src })) {
    const text = readFileSync(join(src, from), 'utf8')
    for (const [, to] of text.matchAll(/^(?:import (?!type\b)[^']*|.*\bimport\()'(\.[^']+\.ts)'/gm)) {
      yield [from, relative('.', normalize(join(dirname(from), to!)))]
    }
  }
}

test('features do not import each other, the store imports no feature, and only app and main know all of them', () => {
  const wrong = [...imports()].filter(([from, to]) => {
    if (composers.includes(roomOf(from)) || roomOf(from) === roomOf(to)) return false
    if (roomOf(from) === 'store')
      return !['config', 'signup/contact.ts'].some(each => to === each || roomOf(to) === each)
    return !isShared(to)
  })
  assert.deepEqual(
    wrong.map(([from, to]) => `${from} imports ${to}`),
    [],
  )
})
