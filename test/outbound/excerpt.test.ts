import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { excerpt } from '../../src/outbound/excerpt.ts'

const sent = { email: 'ada@example.com', name: 'Ada  Lovelace', nick: 'Li' }

const cases: readonly [what: string, json: unknown, line: string][] = [
  ['nothing', undefined, ''],
  ['no JSON of use', 42, ''],
  ['a text', 'no', 'no'],
  ['the telling members, in their order', { id: 7, code: 'bad', message: 'No.\nReally', x: 'y' }, 'bad, No. Really'],
  ['members within', { errors: [{ detail: 'a' }, { title: 'b', meta: { detail: 'c' } }] }, 'a, b'],
  ['what the message leaves to its context', { errors: [{ message: 'No', context: 'Not there' }] }, 'No, Not there'],
  ['an address of anybody', 'known: <eve@example.com>, eve%40example.com', 'known: … …'],
  ['what was sent, in any spelling', 'ADA@EXAMPLE.COM and ada lovelace and Lovelace and LI', '… and … and … and …'],
  ['what was sent, with other blanks', 'Ada\n Lovelace!', '…!'],
  ['no words that only contain it', 'Adam lives', 'Adam lives'],
  ['a long one', { message: 'x'.repeat(1_000) }, 'x'.repeat(200)],
]

describe('what an error answer says, for the log', () => {
  for (const [what, json, line] of cases) test(what, () => assert.equal(excerpt(json, sent), line))

  test('a body that was sent as a text of JSON hides its parts', () => {
    assert.equal(excerpt('no Lovelace', JSON.stringify({ data: { name: 'Ada Lovelace' } })), 'no …')
    assert.equal(excerpt('no {x in it', '{x'), 'no {… in it')
  })

  test('a secret is hidden, the words of it are not', () => {
    assert.equal(excerpt('the API key key_api_1 is bad', undefined, ['key_api_1']), 'the API key … is bad')
  })

  test('a name that begins before the cut is not cut in two', () => {
    const name = 'Augusta Ada King'
    for (let lead = 150; lead < 210; lead++) {
      assert.doesNotMatch(excerpt('x'.repeat(lead) + name, { name }), /Aug|King/, `after ${lead} characters`)
    }
  })

  test('a large answer takes no longer than a small one should', () => {
    assert.equal(excerpt(Array(3).fill({ message: '('.repeat(20_000) }), sent).length, 200)
    assert.equal(excerpt({ message: '@'.repeat(60_000) }, sent), '…')
  })

  test('nothing that was sent appears, whatever it is and wherever it stands', () => {
    const text = fc.oneof(fc.string({ minLength: 3 }), fc.string({ minLength: 3, unit: 'grapheme', maxLength: 100 }))
    const answer = fc.tuple(text, fc.array(text, { maxLength: 3 }), fc.string({ unit: 'grapheme', maxLength: 300 }))
    fc.assert(
      fc.property(answer, fc.boolean(), ([name, others, lead], upper) => {
        const echo = upper ? name.toUpperCase() : name
        // A letter before it could make one word of both, and some letters have no second case of one letter.
        fc.pre(echo.toLowerCase() === name.toLowerCase())
        const line = excerpt({ message: `${lead} ${echo} is odd`, errors: others }, { name, others })
        for (const each of [name, ...others]) {
          const said = each.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
          // What is left of a text of blanks, or is a part of our own mark, says nothing.
          if (said.length > 2 && !/^[…, ]+$/.test(said)) {
            const innocent = excerpt({ message: `${lead} is odd`, errors: [] }, {})
            assert.ok(!line.includes(said) || innocent.includes(said), JSON.stringify({ line, said }))
          }
        }
      }),
      { numRuns: 3_000 },
    )
  })
})
