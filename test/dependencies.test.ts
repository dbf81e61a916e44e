import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'

const root = new URL('../', import.meta.url)
const read = (path: string) => JSON.parse(readFileSync(new URL(path, root), 'utf8'))

/** An entry of the lock file: what is installed in a folder below `node_modules`. */
interface Locked {
  readonly version: string
  readonly integrity?: string
  readonly license?: string
  readonly dev?: true
  readonly devOptional?: true
  readonly deprecated?: string
}

const { '': _, ...packages } = (read('package-lock.json') as { packages: Record<string, Locked> }).packages
const entries = Object.entries(packages)

/** Those that ask for no more than to be named, and so fit an MIT project. */
const inProduction = [
  'MIT',
  'MIT-0',
  'ISC',
  '0BSD',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'Unlicense',
]
/** Tools are not passed on, so these may ask that changes of their own files are published. */
const inDevelopment = [...inProduction, 'MPL-2.0', 'PSF-2.0', 'Zlib']

/** What is not said in SPDX's words (https://spdx.org/licenses), read by hand. */
const byHand: Readonly<Record<string, string>> = {
  'node_modules/@getbrevo/brevo': 'MIT', // in its README
  'node_modules/@mailchimp/mailchimp_marketing': 'Apache-2.0', // "Apache 2.0"
}

/** Of the package itself where it is installed, since the lock file only repeats what was said when it was made. */
function licenceOf([path, { license }]: (typeof entries)[number]): string {
  const installed = existsSync(new URL(`${path}/package.json`, root)) ? read(`${path}/package.json`).license : undefined
  return byHand[path] ?? installed ?? license ?? 'none'
}

/** An expression of SPDX with one kind of operator: of `OR` one is enough, of `AND` all are needed. */
function isAllowed(licence: string, allowed: readonly string[]): boolean {
  const terms = licence.replaceAll(/[()]/g, '').split(/ (?:AND|OR) /)
  const isKnown = (term: string) => allowed.includes(term)
  return licence.includes(' OR ') && !licence.includes(' AND ') ? terms.some(isKnown) : terms.every(isKnown)
}

describe('the dependencies', () => {
  test('every one of the lock file has an integrity hash, and no address of its own', () => {
    assert.ok(entries.length > 100)
    for (const [path, locked] of entries) {
      assert.match(locked.integrity ?? '', /^sha512-[\w+/]{86}==$/, path)
      assert.equal('resolved' in locked && /^https?:/.test(String(locked.resolved)), false, path)
    }
  })

  test('none is deprecated, which npm would not say here (.npmrc)', () => {
    const deprecated = entries.filter(([, locked]) => locked.deprecated !== undefined)
    assert.deepEqual(deprecated, [])
  })

  // A tool that a package of production could also use (an optional peer) would be installed with it: an alias hides it.
  test('no tool is installed in production', () => {
    const both = entries.filter(([, { devOptional }]) => devOptional === true).map(([path]) => path)
    assert.deepEqual(both, [])
  })

  for (const [what, isHere, allowed] of [
    ['production', ({ dev }: Locked) => dev !== true, inProduction],
    ['development', ({ dev }: Locked) => dev === true, inDevelopment],
  ] as const) {
    test(`those of ${what}, and theirs, have a licence that fits this project's`, () => {
      const here = entries.filter(([, locked]) => isHere(locked))
      assert.ok(here.length > 20)
      const others = here
        .map(entry => [entry[0], licenceOf(entry)] as const)
        .filter(([, licence]) => !isAllowed(licence, allowed))
      assert.deepEqual(others, [])
    })
  }

  test('what was read by hand is still there', () => {
    for (const path of Object.keys(byHand)) assert.ok(path in packages, path)
  })
})
