import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { signupRequest } from '../../src/discovery/schemas.ts'
import { parseSignup } from '../../src/signup/parse.ts'
import { isSlow } from '../harness/slow.ts'
import { addresses } from './addresses.ts'

/** As OpenAPI 3.1 means it: JSON Schema 2020-12, patterns with the `u` flag; annotations of ours are not judged. */
const validate = new Ajv2020({ strict: false, unicodeRegExp: true }).compile(signupRequest)

/** What the service accepts: a JSON object (http/body.ts) that is a signup. */
const serviceAccepts = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !('problem' in parseSignup(value))

const trimmed = [...'\t\n\v\f\r \u00A0\u1680\u2000\u2001\u2005\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF']
const nearlyTrimmed = [...'\x1C\x1F\u0085']
const invisible = [...'\u00AD\u115F\u180E\u200B\u200D\u202E\u2060\u2800\u3164\uFE0F\uFFA0\u{1D159}\u{E0020}']
const controls = [...'\0\x01\b\x1B\x7F\x80\x9F\u2028\u2029']
const odd = [
  ...trimmed,
  ...nearlyTrimmed,
  ...invisible,
  ...controls,
  '😀',
  '\u{10FFFF}',
  '\uFFFF',
  'ü',
  '\u0301',
  '\uFF20',
  '@',
  '.',
  '-',
  ',',
  '"',
  '_',
]

const padding = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  { weight: 2, arbitrary: fc.array(fc.constantFrom(...trimmed), { maxLength: 5 }).map(spaces => spaces.join('')) },
  { weight: 1, arbitrary: fc.array(fc.constantFrom(...odd), { maxLength: 2 }).map(spaces => spaces.join('')) },
  { weight: 1, arbitrary: fc.nat(300).map(count => ' '.repeat(count)) },
)
const padded = (core: fc.Arbitrary<string>) => fc.tuple(padding, core, padding).map(parts => parts.join(''))

/** The same with something put in, taken away or put in its place, somewhere. */
const spoilt = (core: fc.Arbitrary<string>) =>
  fc.tuple(core, fc.constantFrom(...odd), fc.nat(), fc.nat(2)).map(([text, character, where, how]) => {
    const points = [...text]
    const at = where % (points.length + 1)
    points.splice(at, how === 0 ? 0 : 1, ...(how === 1 ? [] : [character]))
    return points.join('')
  })

const anyText = fc.string({ unit: 'binary', maxLength: 12 })
const border = fc.constantFrom(0, 1, 2, 50, 98, 99, 100, 101, 102, 103)
const name = fc.oneof(
  anyText,
  fc.constantFrom('', ' ', 'Ada Lovelace', "O'Brien", '用户', '👩‍👩‍👧‍👦'),
  fc.array(fc.constantFrom(...invisible, ' ', 'a'), { minLength: 1, maxLength: 4 }).map(all => all.join('')),
  fc
    .tuple(border, fc.constantFrom('a', '\u200D', '😀', 'é', ' ', 'a😀', '\u3000'))
    .map(([count, unit]) => unit.repeat(count)),
  fc
    .tuple(border, fc.string({ unit: 'grapheme', minLength: 100, maxLength: 103 }))
    .map(([count, text]) => [...text].slice(0, count).join('')),
)

const atext = [..."abcXYZ019!#$%&'*+/=?^_`{|}~-"]
const atom = fc.array(fc.constantFrom(...atext), { minLength: 1, maxLength: 8 }).map(parts => parts.join(''))
const label = fc.oneof(
  fc.constantFrom(
    'a',
    'Z',
    '0',
    'a-b',
    'x--y',
    'xn--bcher-kva',
    'a'.repeat(62),
    'a'.repeat(63),
    'a'.repeat(64),
    '-a',
    'a-',
    '',
  ),
  fc.array(fc.constantFrom(...'abz09'), { minLength: 1, maxLength: 6 }).map(parts => parts.join('')),
)
const topLabel = fc.constantFrom(
  'com',
  'c',
  'museum',
  'xn--p1ai',
  'c0',
  'c-m',
  '123',
  '1a',
  'c-',
  `c${'0'.repeat(62)}`,
  `c${'0'.repeat(63)}`,
)
const address = fc
  .tuple(fc.array(atom, { minLength: 1, maxLength: 3 }), fc.array(label, { minLength: 1, maxLength: 3 }), topLabel)
  .map(([local, labels, top]) => `${local.join('.')}@${labels.join('.')}.${top}`)
/** Addresses of 253 to 257 characters. */
const longAddress = fc.tuple(fc.integer({ min: 253, max: 257 }), fc.boolean()).map(([length, isLocalLong]) => {
  const domain = isLocalLong ? '@example.com' : `@${`${'a'.repeat(63)}.`.repeat(3)}com`
  return 'a'.repeat(length - domain.length) + domain
})
const email = fc.oneof(
  { weight: 3, arbitrary: address },
  { weight: 1, arbitrary: longAddress },
  { weight: 2, arbitrary: fc.constantFrom(...addresses.map(([text]) => text)) },
  { weight: 1, arbitrary: anyText },
)

const variants = (core: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 4, arbitrary: padded(core) }, { weight: 1, arbitrary: spoilt(padded(core)) })
const other = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, 1e300, [], ['a@b.co'], {}, { name: 'Ada' }),
  fc.jsonValue({ maxDepth: 1 }),
)
const value = (core: fc.Arbitrary<string>, good: string) =>
  fc.oneof(
    { weight: 6, arbitrary: variants(core) as fc.Arbitrary<unknown> },
    { weight: 5, arbitrary: fc.constant(good) },
    { weight: 1, arbitrary: other },
  )

/** Bodies as text, so that members may be missing, twice, in any order, or called `__proto__`. */
const members = fc
  .tuple(
    fc.tuple(fc.constant('name'), value(name, 'Ada')),
    fc.tuple(fc.constant('email'), value(email, 'ada@example.com')),
    fc.array(fc.tuple(fc.constantFrom('__proto__', 'Name', 'e-mail', 'constructor', 'name', 'email', ''), other), {
      maxLength: 2,
    }),
    fc.nat(19),
  )
  .map(([name, email, others, missing]) => [
    ...others,
    ...(missing === 0 ? [] : [name]),
    ...(missing === 1 ? [] : [email]),
  ])
const body = fc.oneof(
  {
    weight: 30,
    arbitrary: members.map(each => `{${each.map(pair => pair.map(part => JSON.stringify(part)).join(':')).join()}}`),
  },
  { weight: 1, arbitrary: other.map(each => JSON.stringify(each)) },
)

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

test('C-78: a lone surrogate is refused by the parser; a portable pattern cannot say so', () => {
  for (const surrogate of ['\uD800', '\uDBFF', '\uDC00', '\uDFFF', '\uDC00\uD800']) {
    assert.ok(!serviceAccepts({ name: `a${surrogate}`, email: 'a@b.co' }))
    assert.ok(!serviceAccepts({ name: 'A', email: `a${surrogate}@b.co` }))
    assert.ok(!validate({ name: 'A', email: `a${surrogate}@b.co` }))
  }
})

test('C-79: what holds after trimming is also said for machines', () => {
  const { name, email } = signupRequest.properties
  assert.deepEqual([name.minLength, email.minLength], [1, 1])
  assert.deepEqual(name['x-after-trimming'], { minLength: 1, maxLength: 100 })
  assert.deepEqual(email['x-after-trimming'], { format: 'email', maxLength: 255 })
  for (const { description } of [name, email]) assert.match(description, /white space is removed first/)
  for (const absent of ['maxLength', 'format']) assert.ok(!(absent in name) && !(absent in email), absent)
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
