import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { signupRequest } from '../../src/discovery/schemas.ts'
import { parseSignup } from '../../src/signup/parse.ts'
import { isSlow } from '../harness/environment.ts'
import { addresses } from './addresses.ts'

/** As OpenAPI 3.1 means it: JSON Schema 2020-12, patterns with the `u` flag; annotations of ours are not judged. */
const validate = new Ajv2020({ strict: false, unicodeRegExp: true }).compile(signupRequest)

/** What the service accepts: a JSON object (http/body.ts) that is a signup. */
const serviceAccepts = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !('problem' in parseSignup(value))

const trimmed = [...'\t\n\r \u00A0\u1680\u2000\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF']
const invisible = [...'\u00AD\u115F\u180E\u200B\u2060\u2800\u3164\uFE0F\uFFA0\u{1D159}\u{E0020}']
const odd = [...trimmed, ...invisible, ...'\0\x1B\x1C\x1F\x7F\u0085\x9F😀\u{10FFFF}\uFFFFü\u0301\uFF20@.-,"_']
const text = (characters: readonly string[], maxLength: number, minLength = 0) =>
  fc.array(fc.constantFrom(...characters), { minLength, maxLength }).map(all => all.join(''))

const padding = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  { weight: 2, arbitrary: text(trimmed, 5) },
  { weight: 1, arbitrary: text(odd, 2) },
  { weight: 1, arbitrary: fc.nat(300).map(count => ' '.repeat(count)) },
)
/** With space around it, and sometimes something put in or taken away. */
const sent = (core: fc.Arbitrary<string>) =>
  fc
    .tuple(padding, core, padding, fc.nat(4), fc.nat(), fc.constantFrom(...odd))
    .map(([a, b, c, spoils, where, put]) => {
      const points = [...a, ...b, ...c]
      if (spoils === 0) points.splice(where % (points.length + 1), where % 2, ...(where % 3 === 0 ? [] : [put]))
      return points.join('')
    })

const anyText = fc.string({ unit: 'binary', maxLength: 12 })
const name = fc.oneof(
  anyText,
  fc.constantFrom('', ' ', 'Ada Lovelace', "O'Brien", '用户', '👩‍👩‍👧‍👦'),
  text([...invisible, ' ', 'a'], 4, 1),
  fc
    .tuple(fc.constantFrom(1, 2, 50, 98, 99, 100, 101, 102), fc.constantFrom('a', '\u200D', '😀', ' ', 'a😀'))
    .map(([count, unit]) => unit.repeat(count)),
)

const atom = text([..."abcXYZ019!#$%&'*+/=?^_`{|}~-"], 8, 1)
const edges = ['a', 'Z', '0', 'a-b', 'x--y', 'xn--bcher-kva', 'a'.repeat(63), 'a'.repeat(64), '-a', 'a-', '']
const label = fc.oneof(fc.constantFrom(...edges), text([...'abz09'], 6, 1))
const topLabel = fc.constantFrom(
  'com',
  'c',
  'xn--p1ai',
  'c0',
  '123',
  '1a',
  'c-',
  `c${'0'.repeat(62)}`,
  `c${'0'.repeat(63)}`,
)
const address = fc
  .tuple(fc.array(atom, { minLength: 1, maxLength: 3 }), fc.array(label, { minLength: 1, maxLength: 3 }), topLabel)
  .map(([local, labels, top]) => `${local.join('.')}@${labels.join('.')}.${top}`)
const longAddress = fc.integer({ min: 253, max: 257 }).map(length => `${'a'.repeat(length - 12)}@example.com`)
const known = fc.constantFrom(...addresses.map(([address]) => address))
const email = fc.oneof(address, address, longAddress, known, known, anyText)

const other = fc.constantFrom<unknown>(null, true, 0, 1e300, [], ['a@b.co'], {}, { name: 'Ada' })
const value = (core: fc.Arbitrary<string>, good: string) =>
  fc.oneof(
    { weight: 6, arbitrary: sent(core) as fc.Arbitrary<unknown> },
    { weight: 5, arbitrary: fc.constant(good) },
    { weight: 1, arbitrary: other },
  )
/** Bodies as text, so that members may be missing, twice, in any order, or called `__proto__`. */
const body = fc
  .tuple(
    value(name, 'Ada'),
    value(email, 'ada@example.com'),
    fc.array(fc.tuple(fc.constantFrom('__proto__', 'Name', 'constructor', 'name', 'email', ''), other), {
      maxLength: 2,
    }),
    fc.nat(19),
  )
  .map(([name, email, others, missing]) => {
    const pairs = [...others, ['name', name] as const, ['email', email] as const].filter((_, i) => i !== missing)
    return `{${pairs.map(pair => pair.map(part => JSON.stringify(part)).join(':')).join()}}`
  })

const RUNS = isSlow ? 12_000 : 3_000

test('C-76…C-79, C-89: the published schema accepts a body exactly when the parser does', t => {
  let accepted = 0
  let refused = 0
  // On a failure fast-check tells the seed and the path to it, and the smallest body that shows it.
  fc.assert(
    fc.property(body, text => {
      const value = JSON.parse(text)
      fc.pre(text.isWellFormed() && !/\\ud[89a-f]/i.test(text)) // lone surrogates have a test of their own
      const expected = serviceAccepts(value)
      assert.equal(validate(value), expected)
      if (expected) accepted++
      else refused++
    }),
    { numRuns: RUNS, maxSkipsPerRun: 1 },
  )
  t.diagnostic(`${accepted} accepted, ${refused} refused`)
  assert.ok(accepted + refused >= 0.8 * RUNS)
  assert.ok(
    accepted >= RUNS / 10 && refused >= RUNS / 10,
    `${accepted} accepted, ${refused} refused: not a fair sample`,
  )
})

test('C-66, C-69, C-77: they agree on every character of the basic plane, in every place of both values', () => {
  const email = 'ada@example.com'
  // And beyond it on what is near one that shows nothing.
  for (let code = 0; code <= 0xe1000; code++) {
    // Letters of many scripts, and what is for private use.
    if (code === 0x3100 && !isSlow) code = 0xfe00
    if (code === 0xd800) code = 0xe000 // surrogates have a test of their own
    if (code === 0x10000) code = 0x1bc9f
    if (code === 0x1bca5) code = 0x1d158
    if (code === 0x1d17c) code = 0xdffff
    const c = String.fromCodePoint(code)
    const bodies = [
      ...[c, `${c}a`, `a${c}`, `a${c}a`].map(name => ({ name, email })),
      ...[`${c}${email}`, `${email}${c}`, `a${c}${email}`, `a@b${c}.co`].map(email => ({ name: 'A', email })),
    ]
    for (const body of bodies) {
      if (validate(body) !== serviceAccepts(body)) assert.fail(`they differ on ${JSON.stringify(body)}`)
    }
  }
})

test('C-78: neither the patterns nor the parser are caught by texts made to keep them busy', () => {
  const program = `
    const { Ajv2020 } = await import(${JSON.stringify(import.meta.resolve('ajv/dist/2020.js'))})
    const { signupRequest } = await import(${JSON.stringify(import.meta.resolve('../../src/discovery/schemas.ts'))})
    const { parseSignup } = await import(${JSON.stringify(import.meta.resolve('../../src/signup/parse.ts'))})
    const validate = new Ajv2020({ strict: false }).compile(signupRequest)
    const n = 100_000
    const units = ['a', ' ', 'a ', ' a', '.', 'a.', '@', 'a@', 'a@a.', '-', 'a-', '\\u3000', '😀', '\\0']
    const texts = units.flatMap(unit => ['', '@', 'a@', 'a@a.', '\\0', ' '].flatMap(start =>
      ['', '\\0', '@', '.', ' x', '@a.co'].map(end => start + unit.repeat(n) + end)))
    for (const text of texts) for (const body of [{ name: text, email: 'a@b.co' }, { name: 'A', email: text }]) {
      if (validate(body) === 'problem' in parseSignup(body)) throw new Error('they differ on ' + JSON.stringify(text.slice(0, 20)))
    }`
  // Catastrophic backtracking would take years: the limit tells it from a slow machine.
  const { status, signal, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
    timeout: 300_000,
    encoding: 'utf8',
  })
  assert.deepEqual([status, signal], [0, null], stderr)
})
