/** `MESSAGES_FILE`: the form and the pages speak the languages of visitors. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'

import { languagesOf, placeholdersIn, readMessages } from '../../src/messages/languages.ts'
import { translatable } from '../../src/messages/sentences.ts'

import { blocksOf, textOf } from '../documents.ts'
import { clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startService } from '../harness/service.ts'

const example = new URL('../../examples/messages/messages.json', import.meta.url).pathname
const delivered = readMessages(example)

function written(t: Pick<TestContext, 'after'>, content: unknown): string {
  const path = join(temporaryFolder(t), 'messages.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

test('a visitor reads the first language of Accept-Language that there is, else English', () => {
  const { of } = languagesOf(new Map(['de', 'fr', 'pt-BR', 'zh-Hant'].map(tag => [tag, {}])))
  const cases: readonly (readonly [acceptLanguage: string | undefined, tag: string])[] = [
    [undefined, 'en'],
    ['', 'en'],
    ['DE-at-1996', 'de'],
    ['pt-br', 'pt-BR'],
    ['pt', 'en'],
    ['den', 'en'],
    ['zh-TW, fr', 'fr'],
    ['nl, de;q=0.7, fr;q=0.3', 'de'],
    ['en-GB, de;q=0.9', 'en'],
    ['*', 'en'],
    [`de${'-a'.repeat(4_000)}, fr`, 'de'],
  ]
  for (const [acceptLanguage, tag] of cases) assert.equal(of(acceptLanguage).tag, tag, String(acceptLanguage))
})

test('what a language lacks is in English, which may be replaced', () => {
  const { all, of } = languagesOf(
    new Map([
      ['ar', { new: 'ألف' }],
      ['en', { known: 'Hello again.' }],
    ]),
  )
  const { direction, sentences } = of('ar')
  assert.deepEqual([all.map(({ tag }) => tag), direction], [['en', 'ar'], 'rtl'])
  assert.deepEqual([sentences.new, sentences.known, sentences.recorded], ['ألف', 'Hello again.', translatable.recorded])
})

test('the API speaks English', async t => {
  const { signUp } = await clientOf(await startService(t, { MESSAGES_FILE: example }))
  const { headers, json } = await signUp({ name: 'Ada', email: 'ada@example.com' }, { 'accept-language': 'de' })
  assert.equal(json.message, 'You are on the waitlist.')
  assert.deepEqual([headers.get('content-language'), headers.get('vary')], [null, 'Origin'])
})

test('the delivered file has every sentence in seven languages, with what is filled in', () => {
  assert.deepEqual([...delivered.keys()], ['en', 'de', 'fr', 'es', 'pt', 'ja', 'ar'])
  assert.deepEqual(delivered.get('en'), translatable)
  for (const [tag, translation] of delivered) {
    assert.deepEqual(Object.keys(translation).sort(), Object.keys(translatable).sort(), tag)
    for (const [key, sentence] of Object.entries(translation)) {
      const english = translatable[key as keyof typeof translatable]
      // A word may be the same in two languages.
      if (/[.?…]$/.test(english) && tag !== 'en') assert.notEqual(sentence, english, `${tag} ${key}`)
      assert.deepEqual(placeholdersIn(sentence), placeholdersIn(english), `${tag} ${key}`)
    }
  }
})

test('the file that docs/api.md shows can be used', t => {
  const [shown] = blocksOf(textOf('docs/api.md')).filter(({ language }) => language === 'json')
  assert.deepEqual([...readMessages(written(t, `\uFEFF${shown!.lines.join('\n')}`)).keys()], ['en', 'nl'])
})

test('a wrong file is refused with all that is wrong', t => {
  const mistakes: readonly (readonly [content: unknown, ...problems: string[]])[] = [
    ['{"de": {', "Expected property name or '}' in JSON at position 8 (line 1 column 9)"],
    [[], 'it is not an object of languages'],
    [
      { german: {}, de_AT: {}, 'de-1': {} },
      ...['german', 'de_AT', 'de-1'].map(name => `"${name}" is not a language such as de or pt-BR`),
    ],
    [{ de: 'Hallo' }, 'de is not an object of sentences'],
    ['{"de": {"__proto__": "x"}}', 'de: "__proto__" is not a key of examples/messages/messages.json'],
    [{ de: { new: 7 }, 'fr-CA': { new: ' ' } }, 'de: "new" is not a sentence', 'fr-CA: "new" is not a sentence'],
    [{ de: { new: 'Hallo {name}!' } }, 'de: "new" has an unknown placeholder {name}'],
    [{ de: { 'form.thanks': 'Danke, {Name}.' } }, 'de: "form.thanks" lacks {name}'],
  ]
  for (const [content, ...problems] of mistakes) {
    const path = written(t, content)
    const message = [`MESSAGES_FILE cannot be used: ${path}:`, ...problems].join('\n  - ')
    assert.throws(() => readMessages(path), { name: 'OperatorError', message })
  }
  assert.throws(() => readMessages(join(temporaryFolder(t), 'none.json')), { name: 'OperatorError', message: /ENOENT/ })
})
