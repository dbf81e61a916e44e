/** `MESSAGES_FILE`: the form and the pages speak the languages of visitors. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { placeholdersIn, readMessages, translatable } from '../../src/http/messages/file.ts'
import { languagesOf } from '../../src/http/messages/languages.ts'
import { blocksOf, textOf } from '../documents.ts'
import { clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startService } from '../harness/service.ts'

const example = (name: string): string => new URL(`../../examples/messages/${name}`, import.meta.url).pathname
const delivered = readMessages(example('messages.json'))

function written(t: Pick<TestContext, 'after'>, content: unknown): string {
  const path = join(temporaryFolder(t), 'messages.json')
  writeFileSync(path, typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content))
  return path
}

test('a visitor reads the language that Accept-Language asks for (RFC 4647 §3.4), else English', () => {
  const { of } = languagesOf(new Map(['de', 'fr', 'pt-BR', 'zh-Hant'].map(tag => [tag, {}])))
  const cases: readonly (readonly [acceptLanguage: string | undefined, tag: string])[] = [
    [undefined, 'en'],
    ['', 'en'],
    ['DE-at-1996', 'de'],
    ['pt-br', 'pt-BR'],
    ['pt', 'en'],
    ['zh-Hant-x-private', 'zh-Hant'],
    ['zh-TW, fr', 'fr'],
    ['nl, fr;q=0.3, de;q=0.7', 'de'],
    ['fr ; q=0.8 ,\tde ; q=0.8', 'fr'],
    ['en-GB, de;q=0.9', 'en'],
    ['de;q=0, fr;q=0.001', 'fr'],
    ['de;q=0.000', 'en'],
    ['*, de;q=0.1', 'de'],
    ['*', 'en'],
    ['de;q=2, d€, de_AT, <script>, fr', 'fr'],
    [`de${'-a'.repeat(4_000)}, ${'nl,'.repeat(1_000)}fr`, 'fr'],
  ]
  for (const [acceptLanguage, tag] of cases) assert.equal(of(acceptLanguage).tag, tag, String(acceptLanguage))
})

test('what a language lacks is in English, which may be replaced', () => {
  const { all, of } = languagesOf(
    new Map([
      ['ar', { a: 'ألف' }],
      ['en', { b: 'B!' }],
    ]),
  )
  const arabic = of('ar')
  assert.deepEqual([all.map(({ tag }) => tag), arabic.direction], [['en', 'ar'], 'rtl'])
  const read = (key: string) => {
    const { text, language } = arabic.translate(key, key.toUpperCase())
    return [text, language.tag]
  }
  assert.deepEqual(['a', 'b', 'c'].map(read), [
    ['ألف', 'ar'],
    ['B!', 'en'],
    ['C', 'en'],
  ])
})

test('the API speaks English', async t => {
  const { signUp } = await clientOf(await startService(t, { MESSAGES_FILE: example('messages.json') }))
  const { headers, json } = await signUp({ name: 'Ada', email: 'ada@example.com' }, { 'accept-language': 'de' })
  assert.equal(json.message, 'You are on the waitlist.')
  assert.deepEqual([headers.get('content-language'), headers.get('vary')], [null, 'Origin'])
})

test('the files of examples/messages have every sentence, with what is filled in', () => {
  assert.deepEqual([...readMessages(example('en.json'))], [['en', translatable]])
  assert.deepEqual([...delivered.keys()], ['de', 'fr', 'es', 'pt', 'ja', 'ar'])
  for (const [tag, translation] of delivered) {
    assert.deepEqual(Object.keys(translation).sort(), Object.keys(translatable).sort(), tag)
    for (const [key, sentence] of Object.entries(translation)) {
      const english = translatable[key]!
      // A word may be the same in two languages.
      if (/[.?…]$/.test(english)) assert.notEqual(sentence, english, `${tag} ${key}`)
      assert.deepEqual(placeholdersIn(sentence), placeholdersIn(english), `${tag} ${key}`)
    }
  }
})

test('the file that docs/api.md shows can be used', t => {
  const [shown] = blocksOf(textOf('docs/api.md')).filter(({ language }) => language === 'json')
  assert.deepEqual([...readMessages(written(t, `\uFEFF${shown!.lines.join('\n')}`)).keys()], ['en', 'nl'])
})

test('a wrong file is refused with all that is wrong', t => {
  const unknownKey = 'is none of the keys that are in examples/messages/en.json'
  const mistakes: readonly (readonly [content: unknown, ...problems: string[]])[] = [
    ['{"de": {', "it is not JSON: Expected property name or '}' in JSON at position 8 (line 1 column 9)"],
    [Buffer.from([0x7b, 0xff, 0x7d]), 'it is not JSON: The encoded data was not valid for encoding utf-8'],
    [[], 'it is not an object of languages'],
    [' '.repeat(1_048_577), 'it has more than 1048576 bytes'],
    [
      { german: {}, de_AT: {}, 'de-1': {} },
      ...['german', 'de_AT', 'de-1'].map(name => `"${name}" is not a language such as de or pt-BR`),
    ],
    [{ de: 'Hallo' }, 'de is not an object of sentences'],
    ['{"de": {"nwe": "x", "__proto__": "x"}}', `de: "nwe" ${unknownKey}`, `de: "__proto__" ${unknownKey}`],
    [{ de: { new: 7 }, 'fr-CA': { new: ' ' } }, 'de: "new" is not text', 'fr-CA: "new" is empty'],
    [{ de: { new: 'Du bist\ndrauf.' } }, 'de: "new" is not one line'],
    [{ de: { new: 'x'.repeat(181) } }, 'de: "new" has more than 180 characters'],
    [{ de: { new: 'Hallo {name}!' } }, 'de: "new" has an unknown placeholder {name}'],
    [{ de: { 'form.thanks': 'Danke, {Name}.' } }, 'de: "form.thanks" lacks {name}'],
  ]
  for (const [content, ...problems] of mistakes) {
    const path = written(t, content)
    const message = [`MESSAGES_FILE cannot be used: ${path}:`, ...problems].join('\n  - ')
    assert.throws(() => readMessages(path), { name: 'OperatorError', message })
  }
  const folder = temporaryFolder(t)
  assert.throws(() => readMessages(join(folder, 'none.json')), /there is no such file$/)
  assert.throws(() => readMessages(folder), /it is not a file$/)
})
