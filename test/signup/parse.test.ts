/** Which bodies are signups, for the parser and for the published schema alike. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { signupRequest } from '../../src/discovery/schemas.ts'
import { emailKey } from '../../src/signup/contact.ts'
import { parseSignup } from '../../src/signup/parse.ts'
import { isSlow } from '../harness/environment.ts'

/** As OpenAPI 3.1 means it: JSON Schema 2020-12, patterns with the `u` flag. */
const validate = new Ajv2020({ strict: false, unicodeRegExp: true }).compile(signupRequest)

const accepts = (body: object): boolean => !('problem' in parseSignup(body))
const acceptsName = (name: string): boolean => accepts({ name, email: 'ada@example.com' })
const acceptsEmail = (email: string): boolean => accepts({ name: 'Ada', email })
const problemOf = (body: object): string | undefined => {
  const result = parseSignup(body)
  return 'problem' in result ? result.problem : undefined
}
function parsed(body: object): { name: string; email: string } {
  const result = parseSignup(body)
  if ('problem' in result) assert.fail(result.problem)
  return { ...result }
}

const a = (count: number): string => 'a'.repeat(count)

/** Addresses that validators disagree about: borderline, malformed, quoted, internationalised, long. */
const addresses: readonly (readonly [address: string, isAccepted: boolean])[] = [
  ['USER@Example.COM', true],
  ['a@b.co', true],
  ['first.last@sub.example.co.uk', true],
  ['1234567890@example.com', true],
  // All of atext (RFC 5322 §3.2.3).
  ["!#$%&'*+/=?^_`{|}~-@example.com", true],
  ['-a@example.com', true],
  // Domains: punycode, digits, hyphens, short and many labels.
  ['user@xn--bcher-kva.example', true],
  ['user@xn--p1ai', false],
  ['user@example.xn--p1ai', true],
  ['user@1.123.a.b.c.d.example.com', true],
  ['user@ex--ample.c', true],
  ['user@localhost', false],
  ['user@example.com.', false],
  ['user@-example.com', false],
  ['user@example-.com', false],
  ['user@ex_ample.com', false],
  ['user@example..com', false],
  ['user@.example.com', false],
  ['user@example.123', false],
  ['user@192.0.2.1', false],
  ['.user@example.com', false],
  ['user.@example.com', false],
  ['us..er@example.com', false],
  // Not one address.
  ['user@@example.com', false],
  ['user@exa mple.com', false],
  ['us er@example.com', false],
  ['@example.com', false],
  ['user@', false],
  ['userexample.com', false],
  ['user@example.com,b@example.com', false],
  ['User <user@example.com>', false],
  ['mailto:user@example.com', false],
  ['user@example.com\r\nBcc: x@example.org', false],
  ['user\0@example.com', false],
  // Quoted local parts, comments, address literals (RFC 5321 §4.1.2, §4.1.3; RFC 5322 §3.2.2).
  ['"quoted local"@example.com', false],
  ['"a@b"@example.com', false],
  ['user(comment)@example.com', false],
  ['user@[192.0.2.1]', false],
  ['user@[IPv6:2001:db8::1]', false],
  // Not ASCII: scripts, zero width, bidirectional, look-alikes, combining marks (RFC 6531).
  ['用户@例子.广告', false],
  ['user@bücher.example', false],
  ['us\u200Ber@example.com', false],
  ['us\u202Eer@example.com', false],
  ['u\u017Fer@example.com', false],
  ['user@\uFF45xample.com', false],
  ['jo\u0301se@example.com', false],
  // A label of 63 and 64 characters, a whole of 255 and 256.
  [`a@${a(63)}.com`, true],
  [`a@${a(64)}.com`, false],
  [`${a(243)}@example.com`, true],
  [`${a(244)}@example.com`, false],
  [`a@${a(63)}.${a(63)}.${a(63)}.${a(57)}.com`, true],
  [`ab@${a(63)}.${a(63)}.${a(63)}.${a(57)}.com`, false],
]

test('C-72…C-74: each address is accepted or refused as the table says', () => {
  for (const [address, isAccepted] of addresses) assert.equal(acceptsEmail(address), isAccepted, address)
})

test('C-66: what ECMAScript calls white space is trimmed from both ends of both values, and nothing else', () => {
  // ECMA-262 §12.2, §12.3.
  const spaces = [...'\t\n\v\f\r \u00A0\u1680\u2028\u2029\u202F\u205F\u3000\uFEFF']
  for (let code = 0x2000; code <= 0x200a; code++) spaces.push(String.fromCodePoint(code))
  for (const space of spaces) {
    const signup = parsed({ name: `${space}Ada L${space}`, email: `${space}a@b.co${space}` })
    assert.deepEqual(signup, { name: 'Ada L', email: 'a@b.co' })
    assert.equal(problemOf({ name: space, email: 'a@b.co' }), 'name is required')
    assert.equal(problemOf({ name: 'A', email: space }), 'email is required')
  }
  for (const kept of '\u180E\u200B\u200D\u2060\u2800\u3164') {
    assert.equal(parsed({ name: `${kept}A${kept}`, email: 'a@b.co' }).name, `${kept}A${kept}`)
    assert.ok(!acceptsEmail(`${kept}a@b.co`))
  }
  assert.ok(!acceptsName('\u0085'), 'NEL is a control, not white space')
})

test('a name that shows nothing is missing', () => {
  // Unicode's list, as this Node.js knows it, and blanks that are not on it.
  const blank = /(?!\p{Unassigned})[\p{Default_Ignorable_Code_Point}\u2800\uFFF9-\uFFFB\u{1D159}]/u
  let count = 0
  for (let code = 0; code <= 0x10ffff; code++) {
    const character = String.fromCodePoint(code)
    if (!blank.test(character)) continue
    count++
    for (const name of [character, ` ${character} \u3164\u00A0${character}`]) {
      assert.equal(problemOf({ name, email: 'a@b.co' }), 'name is required', `U+${code.toString(16)}`)
    }
    if (character.trim() !== '') assert.equal(parsed({ name: `${character}A`, email: 'a@b.co' }).name, `${character}A`)
  }
  assert.ok(count > 400, 'tag characters are on the list')
  for (const name of ['\u0301', '👩‍💻', '❤️', '.', '\uFFFD', '\uE000', 'ㅏ']) assert.ok(acceptsName(name), name)
})

test('C-67, C-68, C-70: a name has at most 100 code points after trimming, and is not normalised', () => {
  assert.ok(acceptsName('😀'.repeat(100)))
  assert.ok(!acceptsName('😀'.repeat(101)))
  assert.ok(!acceptsName(`${'😀'.repeat(50)}${'é'.repeat(51)}`))
  assert.ok(acceptsName(`${' '.repeat(500)}${a(100)}\n`))
  const decomposed = 'e\u0301'.repeat(50)
  assert.equal(parsed({ name: decomposed, email: 'a@b.co' }).name, decomposed)
  assert.ok(!acceptsName(`${decomposed}a`))
})

test('C-69: controls, line separators and lone surrogates are refused in a name; all else is kept', () => {
  for (let code = 0; code <= 0x9f; code++) {
    const isControl = code <= 0x1f || code >= 0x7f
    assert.equal(acceptsName(`a${String.fromCodePoint(code)}b`), !isControl, `U+${code.toString(16)}`)
  }
  const refused = ['\u2028', '\u2029', '\uD800', '\uDFFF', '\uDE00\uD83D']
  for (const each of refused) assert.ok(!acceptsName(`a${each}b`))
  const kept = ['\u200D', '\u202E', '\u2066', '\u0301', '\uFFFD', '\uFFFE', '<b>', '"', "'; drop table", '\\', '%00']
  for (const each of kept) assert.equal(parsed({ name: `a${each}b`, email: 'a@b.co' }).name, `a${each}b`)
})

test('C-71: the first problem is named: name before email; missing, type, empty, length, form', () => {
  const rows: readonly [body: object, problem: string][] = [
    [{}, 'name is required'],
    [{ name: null, email: 7 }, 'name is required'],
    [{ name: ['Ada'], email: 'x' }, 'name must be text'],
    [{ name: ' ', email: 'x' }, 'name is required'],
    [{ name: `\0${a(100)}`, email: 'x' }, 'name must be at most 100 characters long'],
    [{ name: 'a\0\uD800', email: 'x' }, 'name must not contain control characters'],
    [{ name: 'a\uD800', email: 'x' }, 'name must be well-formed Unicode text'],
    [{ name: 'A' }, 'email is required'],
    [{ name: 'A', email: null }, 'email is required'],
    [{ name: 'A', email: { a: 'b' } }, 'email must be text'],
    [{ name: 'A', email: '' }, 'email is required'],
    [{ name: 'A', email: '@'.repeat(256) }, 'email must be at most 255 characters long'],
    [{ name: 'A', email: 'a@b' }, 'email must be a valid email address'],
    [{ name: 'A', email: '\uD800@b.co' }, 'email must be a valid email address'],
  ]
  for (const [body, problem] of rows) assert.equal(problemOf(body), problem)
})

test('C-29, C-63: only own members count, and only two of them', () => {
  const inherited = Object.create({ name: 'Ada', email: 'ada@example.com' })
  assert.equal(problemOf(inherited), 'name is required')
  assert.equal(problemOf(JSON.parse('{"__proto__":{"name":"A","email":"a@b.co"}}')), 'name is required')
  assert.deepEqual(parsed({ name: 'A', email: 'a@b.co', id: 1, state: 'x' }), { name: 'A', email: 'a@b.co' })
})

test('C-75: an address is kept as typed, and compared in ASCII lower case, with its tag and dots', () => {
  assert.equal(parsed({ name: 'A', email: 'Ada@Example.COM' }).email, 'Ada@Example.COM')
  assert.equal(emailKey('Ada.L+Tag@Example.COM'), 'ada.l+tag@example.com')
})

const odd = [
  ...'\t\n \u00A0\u2029\u3000\uFEFF\u00AD\u115F\u200B\u2800\u{E0020}\0\x1F\x7F\u0085\x9F😀\uFFFFü\u0301\uFF20@.-,"_1',
]
const names = [
  '',
  ' ',
  'Ada Lovelace',
  '用户',
  '👩‍👩‍👧‍👦',
  '\u3164a',
  ...[1, 99, 100, 101].flatMap(n => [a(n), '😀'.repeat(n)]),
]
const emails = ['x--y@a-b.c0', ...addresses.map(([address]) => address)]

/** One of these, sometimes padded, with up to two places at which something is put in or taken away. */
const edited = (seeds: readonly string[]) =>
  fc
    .tuple(
      fc.constantFrom(...seeds),
      fc.constantFrom('', ' ', '\u2029\t', ' '.repeat(300)),
      fc.array(fc.tuple(fc.nat(300), fc.nat(1), fc.constantFrom('', ...odd)), { maxLength: 2 }),
    )
    .map(([seed, padding, edits]) => {
      const points = [...seed]
      for (const [at, cut, put] of edits) points.splice(at % (points.length + 1), cut, put)
      return padding + points.join('') + padding
    })
const other = fc.constantFrom<unknown>(null, true, 0, 1e300, [], ['a@b.co'], {}, { name: 'Ada' })
const value = (good: string, seeds: readonly string[]) =>
  fc.oneof(
    { weight: 6, arbitrary: edited([good, ...seeds]) as fc.Arbitrary<unknown> },
    { weight: 5, arbitrary: fc.constant(good) },
    { weight: 1, arbitrary: other },
  )
/** Bodies as text, so that members may be missing, twice, or called `__proto__`. */
const body = fc
  .tuple(
    fc.array(fc.tuple(fc.constantFrom('__proto__', 'Name', 'name', 'email'), other), { maxLength: 2 }),
    ...[value('Ada Lovelace', names), value('ada@example.com', emails)],
    fc.nat(19),
  )
  .map(([others, name, email, missing]) => {
    const pairs = [...others, ['name', name] as const, ['email', email] as const].filter((_, i) => i !== missing)
    return `{${pairs.map(pair => pair.map(part => JSON.stringify(part)).join(':')).join()}}`
  })

test('C-76…C-79, C-89: the published schema accepts a body exactly when the parser does', () => {
  const runs = isSlow ? 12_000 : 3_000
  const counts = { true: 0, false: 0 }
  const agree = fc.property(body, text => {
    const value = JSON.parse(text)
    const isAccepted = accepts(value)
    assert.equal(validate(value), isAccepted)
    counts[`${isAccepted}`]++
  })
  fc.assert(agree, { numRuns: runs })
  assert.ok(Math.min(counts.true, counts.false) > runs / 10, `not a fair sample: ${JSON.stringify(counts)}`)
})

test('C-66, C-69, C-77: they agree on every character of the basic plane, in every place of both values', () => {
  const email = 'ada@example.com'
  // Beyond the basic plane, only those near a character that shows nothing.
  for (let code = 0; code <= 0xe1000; code++) {
    if (code === 0x3100 && !isSlow) code = 0xfe00 // letters
    if (code === 0xd800) code = 0xe000 // lone surrogates, which no JSON in UTF-8 has
    if (code === 0x10000) code = 0x1bc9f
    if (code === 0x1bca5) code = 0x1d158
    if (code === 0x1d17c) code = 0xdffff
    const c = String.fromCodePoint(code)
    const bodies = [
      ...[c, `${c}a`, `a${c}`, `a${c}a`].map(name => ({ name, email })),
      ...[`${c}${email}`, `${email}${c}`, `a${c}${email}`, `a@b${c}.co`].map(email => ({ name: 'A', email })),
    ]
    for (const body of bodies) {
      if (validate(body) !== accepts(body)) assert.fail(`they differ on ${JSON.stringify(body)}`)
    }
  }
})

test('C-78: no text keeps a pattern or the parser busy', () => {
  // With all errors every pattern is tried; catastrophic backtracking would never end.
  const validateAll = new Ajv2020({ strict: false, unicodeRegExp: true, allErrors: true }).compile(signupRequest)
  for (const unit of ['a', ' ', 'a ', ' a', '.', 'a.', '@', 'a@', 'a@a.', '-', 'a-', '\u3000', '😀', '\0']) {
    for (const start of ['', '@', 'a@', 'a@a.', '\0', ' ']) {
      for (const end of ['', '\0', '@', '.', ' x', '@a.co']) {
        const text = start + unit.repeat(100_000) + end
        for (const body of [
          { name: text, email: 'a@b.co' },
          { name: 'A', email: text },
        ]) {
          if (validateAll(body) !== accepts(body)) assert.fail(`they differ on ${JSON.stringify(text.slice(0, 20))}`)
        }
      }
    }
  }
})
