import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { sourceLabel, sourceParameters } from '../../src/signup/contact.ts'
import { parseSource } from '../../src/signup/parse.ts'

const cases: [query: string, source: object | undefined][] = [
  ['', undefined],
  ['utm_source=newsletter', { utm_source: 'newsletter' }],
  [
    'utm_source=a&utm_medium=b&utm_campaign=c&utm_term=d&utm_content=e&ref=f',
    {
      utm_source: 'a',
      utm_medium: 'b',
      utm_campaign: 'c',
      utm_term: 'd',
      utm_content: 'e',
      ref: 'f',
    },
  ],
  // Decoded like a form.
  ['utm_term=early+access&ref=a%2Bb', { utm_term: 'early access', ref: 'a+b' }],
  ['utm_campaign=Gr%C3%BC%C3%9Fe%20%F0%9F%9A%80', { utm_campaign: 'Grüße 🚀' }],
  ['utm_campaign=100%&ref=%zz', { utm_campaign: '100%', ref: '%zz' }],
  ['ref=caf%E9', { ref: 'caf\uFFFD' }],
  ['%75tm_source=encoded', { utm_source: 'encoded' }],
  // The first of a repeated parameter, even if it is empty.
  ['ref=first&ref=second', { ref: 'first' }],
  ['ref=&ref=second', undefined],
  // Nothing is left, or nothing is known.
  ['utm_source', undefined],
  ['utm_source=&ref=+%09%0A+', undefined],
  ['gclid=1&UTM_SOURCE=a&utm_source%20=b&__proto__=c&constructor=d&utm_id=e', undefined],
  ['name=Eve&email=eve@example.com&ref=ada', { ref: 'ada' }],
  // Cleaned like a name.
  ['ref=%20%20ada%20lovelace%C2%A0', { ref: 'ada lovelace' }],
  ['ref=%00a%00b%1B%5B31m%7F%C2%85%E2%80%A8c%E2%80%A9%0D%0A', { ref: 'ab[31mc' }],
  ['ref=%00%20%00ada', { ref: 'ada' }],
  ['ref=%00', undefined],
  [`ref=${'a'.repeat(101)}`, { ref: 'a'.repeat(100) }],
  [`ref=${'%F0%9F%9A%80'.repeat(101)}`, { ref: '🚀'.repeat(100) }],
  [`ref=${'a'.repeat(99)}+b`, { ref: 'a'.repeat(99) }],
]

for (const [query, source] of cases) {
  const shown = query.length > 60 ? `${query.slice(0, 60)}…` : query
  test(`of ${JSON.stringify(shown)} the source is ${JSON.stringify(source)?.slice(0, 60)}`, () =>
    assert.deepEqual(parseSource(query), source))
}

const piece = fc.oneof(
  fc.constantFrom(
    ...sourceParameters,
    '=',
    '&',
    '%',
    '+',
    '%00',
    '%0A',
    '%E2%80%A8',
    '%ED%A0%80',
    '%F0%9F%9A%80',
    '\uD83D',
    '😀',
  ),
  fc.string({ unit: 'binary', maxLength: 5 }),
  fc.tuple(fc.constantFrom('a', ' ', '%20', '🚀', '%00'), fc.nat(120)).map(([text, count]) => text.repeat(count)),
)
const query = fc.oneof(
  fc.array(piece, { maxLength: 30 }).map(pieces => pieces.join('')),
  fc
    .array(fc.tuple(fc.constantFrom(...sourceParameters), piece, piece), { maxLength: 8 })
    .map(pairs => pairs.map(([name, ...value]) => `${name}=${value.join('')}`).join('&')),
)

test('whatever the query is, nothing throws, and a source keeps its bounds', () => {
  let known = 0
  fc.assert(
    fc.property(query, text => {
      const source = parseSource(text)
      if (source === undefined) return
      known++
      const values = Object.entries(source)
      assert.ok(values.length > 0)
      const order = sourceParameters.filter(name => name in source)
      assert.deepEqual(Object.keys(source), order, 'its members are in order, so that its JSON is always the same')
      for (const [, value] of values) {
        assert.ok(value.length > 0 && [...value].length <= 100, value)
        assert.equal(value, value.trim())
        assert.ok(value.isWellFormed())
        assert.doesNotMatch(value, /[\p{Cc}\u2028\u2029]/u)
      }
      assert.ok(!JSON.stringify(source).includes('\\u'), 'PostgreSQL refuses some escapes')
    }),
    { numRuns: 300 },
  )
  assert.ok(known > 30, `${known} sources`)
})

test('a source is counted by its utm_source, or else by its ref', () => {
  assert.equal(sourceLabel({ utm_source: 'a', ref: 'b' }), 'a')
  assert.equal(sourceLabel({ utm_medium: 'a', ref: 'b' }), 'b')
  assert.equal(sourceLabel({ utm_medium: 'a' }), null)
  assert.equal(sourceLabel(undefined), null)
})
