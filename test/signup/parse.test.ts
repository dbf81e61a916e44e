import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EMAIL_MAX, EMAIL_PATTERN, emailKey, type Signup } from '../../src/signup/contact.ts'
import { parseSignup } from '../../src/signup/parse.ts'
import { addresses } from './addresses.ts'

const accepts = (body: object): boolean => !('problem' in parseSignup(body))
const acceptsName = (name: unknown): boolean => accepts({ name, email: 'ada@example.com' })
const acceptsEmail = (email: unknown): boolean => accepts({ name: 'Ada', email })
const problemOf = (body: object) => {
  const result = parseSignup(body)
  return 'problem' in result ? result.problem : undefined
}

function parsed(body: object): Signup {
  const result = parseSignup(body)
  if ('problem' in result) assert.fail(result.problem)
  return result
}

const pattern = new RegExp(`^(?:${EMAIL_PATTERN})$`, 'u')

test('C-72…C-74: each address of the table is accepted or refused as it says, by the parser and by the pattern', () => {
  for (const [address, isAccepted] of addresses) {
    assert.equal(pattern.test(address) && address.length <= EMAIL_MAX, isAccepted, address)
    // One row has nothing but a line feed too much, which is trimmed first.
    assert.equal(acceptsEmail(address), isAccepted || address === 'user@example.com\n', address)
  }
})

test('C-74: an address has at most 255 characters, wherever they are', () => {
  const label = 'a'.repeat(63)
  const long = `${label}.${label}.${label}`
  assert.ok(acceptsEmail(`${'a'.repeat(255 - 12)}@example.com`))
  assert.ok(!acceptsEmail(`${'a'.repeat(256 - 12)}@example.com`))
  assert.ok(acceptsEmail(`a@${long}.${'a'.repeat(57)}.com`))
  assert.equal(
    problemOf({ name: 'A', email: `ab@${long}.${'a'.repeat(57)}.com` }),
    'email must be at most 255 characters long',
  )
})

/** What ECMAScript's trim removes: WhiteSpace and LineTerminator (ECMA-262 §12.2, §12.3). */
const spaces = [
  0x09,
  0x0a,
  0x0b,
  0x0c,
  0x0d,
  0x20,
  0xa0,
  0x1680,
  0x2028,
  0x2029,
  0x202f,
  0x205f,
  0x3000,
  0xfeff,
  ...Array.from({ length: 11 }, (_, i) => 0x2000 + i),
].map(code => String.fromCodePoint(code))

test('C-66: exactly these characters are trimmed, from both ends of both values', () => {
  for (const space of spaces) {
    const signup = parsed({ name: `${space}Ada L${space}`, email: `${space}a@b.co${space}` })
    assert.deepEqual({ ...signup }, { name: 'Ada L', email: 'a@b.co' })
    assert.equal(problemOf({ name: space, email: 'a@b.co' }), 'name is required')
    assert.equal(problemOf({ name: 'A', email: space }), 'email is required')
  }
  for (const kept of ['\u180E', '\u200B', '\u200D', '\u2060', '\u2800', '\u3164']) {
    assert.equal(parsed({ name: `${kept}A${kept}`, email: 'a@b.co' }).name, `${kept}A${kept}`)
    assert.ok(!acceptsEmail(`${kept}a@b.co`))
  }
  assert.ok(!acceptsName('\u0085'), 'NEL is a control, not white space')
})

test('a name of which nothing is seen is none', () => {
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

test('C-67: a name is counted in code points', () => {
  assert.ok(acceptsName('😀'.repeat(100)))
  assert.ok(!acceptsName('😀'.repeat(101)))
  assert.ok(acceptsName(`${'😀'.repeat(50)}${'é'.repeat(50)}`))
  assert.ok(!acceptsName(`${'😀'.repeat(50)}${'é'.repeat(51)}`))
  assert.ok(acceptsName(`${' '.repeat(500)}${'a'.repeat(100)}\n`), 'C-68: when it is trimmed')
  const decomposed = 'e\u0301'.repeat(50)
  assert.equal(parsed({ name: decomposed, email: 'a@b.co' }).name, decomposed, 'C-70: nothing is normalised')
  assert.ok(!acceptsName(`${decomposed}a`))
})

test('C-69: controls, line separators and lone surrogates are refused in a name, everything else is kept', () => {
  for (let code = 0; code <= 0x9f; code++) {
    const isControl = code <= 0x1f || code >= 0x7f
    assert.equal(acceptsName(`a${String.fromCodePoint(code)}b`), !isControl, `U+${code.toString(16)}`)
  }
  for (const refused of ['\u2028', '\u2029', '\uD800', '\uDFFF', '\uDE00\uD83D'])
    assert.ok(!acceptsName(`a${refused}b`))
  for (const kept of [
    '\u200D',
    '\u202E',
    '\u2066',
    '\u0301',
    '\uFFFD',
    '\uFFFE',
    '<b>',
    '"',
    "'; drop table",
    '\\',
    '%00',
  ]) {
    assert.equal(parsed({ name: `a${kept}b`, email: 'a@b.co' }).name, `a${kept}b`)
  }
})

test('C-71: the first problem is named: name before email; missing, type, empty, length, form', () => {
  const rows: readonly [body: object, problem: string][] = [
    [{}, 'name is required'],
    [{ email: 7 }, 'name is required'],
    [{ name: null, email: 7 }, 'name is required'],
    [{ name: 7 }, 'name must be text'],
    [{ name: ['Ada'], email: 'x' }, 'name must be text'],
    [{ name: ' ', email: 'x' }, 'name is required'],
    [{ name: `\0${'a'.repeat(100)}`, email: 'x' }, 'name must be at most 100 characters long'],
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
  assert.deepEqual({ ...parsed({ name: 'A', email: 'a@b.co', id: 1, state: 'x' }) }, { name: 'A', email: 'a@b.co' })
})

test('C-75: the key of an address is its ASCII lower case, tags and dots untouched', () => {
  const key = (email: string) => emailKey(parsed({ name: 'A', email }).email)
  assert.equal(key('Ada.L+Tag@Example.COM'), 'ada.l+tag@example.com')
  assert.notEqual(key('ada.l@example.com'), key('adal@example.com'))
  assert.equal(parsed({ name: 'A', email: 'Ada@Example.COM' }).email, 'Ada@Example.COM')
})
