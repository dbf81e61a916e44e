/** `MESSAGES_FILE`: visitors are told the same in their languages. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { checkAll } from '../../src/app/checks.ts'
import { readConfig } from '../../src/config/config.ts'
import { placeholdersIn, readMessages, translatable } from '../../src/http/messages/file.ts'
import { languagesOf } from '../../src/http/messages/languages.ts'
import { sentences } from '../../src/http/messages/sentences.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { blocksOf, textOf } from '../documents.ts'
import { clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runCommand } from '../harness/program.ts'
import { startService } from '../harness/service.ts'

const example = (name: string): string => fileURLToPath(new URL(`../../examples/messages/${name}`, import.meta.url))
const delivered = readMessages(example('messages.json'))

function written(t: Pick<TestContext, 'after'>, content: unknown): string {
  const path = join(temporaryFolder(t), 'messages.json')
  writeFileSync(path, typeof content === 'string' || Buffer.isBuffer(content) ? content : JSON.stringify(content))
  return path
}

describe('the language of an answer', () => {
  const { of } = languagesOf(
    new Map([
      ['de', {}],
      ['fr', {}],
      ['pt-BR', {}],
      ['zh-Hant', {}],
    ]),
  )

  const cases: readonly (readonly [acceptLanguage: string | undefined, tag: string])[] = [
    [undefined, 'en'],
    ['', 'en'],
    ['de', 'de'],
    ['de-AT', 'de'],
    ['DE-at-1996', 'de'],
    ['pt-br', 'pt-BR'],
    ['pt', 'en'],
    ['zh-Hant-TW', 'zh-Hant'],
    ['zh-Hant-x-private', 'zh-Hant'],
    ['zh-TW, fr', 'fr'],
    [`de${'-a'.repeat(11)}`, 'de'],
    [`de${'-a'.repeat(12)}, fr`, 'fr'],
    ['nl, fr;q=0.3, de;q=0.7', 'de'],
    ['fr ; q=0.8 ,\tde ; q=0.8', 'fr'],
    ['en-GB, de;q=0.9', 'en'],
    ['de;q=0, fr;q=0.001', 'fr'],
    ['de;q=0.000', 'en'],
    ['*, de;q=0.1', 'de'],
    ['*', 'en'],
    ['de;q=2, fr', 'fr'],
    ['d€, de_AT, <script>, fr', 'fr'],
    [`${'nl,'.repeat(19)}de`, 'de'],
    [`${'nl,'.repeat(20)}de`, 'en'],
  ]
  for (const [acceptLanguage, tag] of cases) {
    test(`${JSON.stringify(acceptLanguage)?.slice(0, 40)} is answered in ${tag}`, () => {
      assert.equal(of(acceptLanguage).tag, tag)
    })
  }

  test('whatever was asked before, the same is answered', () => {
    const range = fc.constantFrom('de', 'fr', 'pt-BR', 'zh-Hant-TW', 'en', 'nl', '*', 'x')
    const weight = fc.constantFrom('', ';q=0', ';q=0.5', ';q=1')
    const field = fc.oneof(
      fc.array(fc.tuple(range, weight), { maxLength: 4 }).map(items => items.map(item => item.join('')).join(',')),
      fc.string({ maxLength: 8 }),
    )
    const fresh = (value: string) =>
      languagesOf(new Map([...['de', 'fr', 'pt-BR', 'zh-Hant'].map(tag => [tag, {}] as const)])).of(value)
    fc.assert(
      fc.property(field, value => assert.equal(of(value).tag, fresh(value).tag)),
      { numRuns: 2_500 },
    )
  })
})

test('what is remembered of Accept-Language is bounded', () => {
  // In a process of its own, whose memory nobody else uses.
  const module = new URL('../../src/http/messages/languages.ts', import.meta.url).href
  const program = `
    import { languagesOf } from ${JSON.stringify(module)}
    const { of } = languagesOf(new Map([['de', {}]]))
    const bytes = () => (globalThis.gc(), process.memoryUsage().heapUsed)
    of('de')
    const before = bytes()
    for (let i = 0; i < 50_000; i++) of('x-' + i + ',' + 'y'.repeat(i % 2 ? 80 : 7_000))
    console.log(bytes() - before, of('de').tag)`
  const [bytes = '', tag] = execFileSync(
    process.execPath,
    ['--expose-gc', '--input-type=module-typescript', '-e', program],
    {
      encoding: 'utf8',
    },
  ).split(' ')
  assert.ok(Number(bytes) < 1_000_000, bytes)
  assert.equal(tag, 'de\n')
})

describe('with the file of examples/messages', { concurrency: true }, () => {
  test('the API speaks English', async t => {
    const { signUp } = await clientOf(await startService(t, { MESSAGES_FILE: example('messages.json') }))
    const { headers, json } = await signUp({ name: 'Ada', email: 'ada@example.com' }, { 'accept-language': 'de' })
    assert.equal(json.message, sentences.new)
    assert.deepEqual([headers.get('content-language'), headers.get('vary')], [null, 'Origin'])
  })

  test('C-32, C-33: the form is told the sentences of its visitor, and each language has a tag of its own', async t => {
    const { request } = await clientOf(await startService(t, { MESSAGES_FILE: example('messages.json') }))
    const tags = new Set<string | null>()
    for (const [tag, translation] of [...delivered, ['en', translatable] as const]) {
      const headers = { 'accept-language': tag }
      const { headers: fields, json } = await request('/form.json', { headers })
      const { language, dir, sentences: told, refusals } = json
      assert.deepEqual([language, dir], [tag, tag === 'ar' ? 'rtl' : 'ltr'])
      const expected = Object.entries(translation).filter(([key]) => key.startsWith('form.'))
      assert.deepEqual(
        Object.entries(told)
          .map(([key, sentence]) => [`form.${key}`, sentence])
          .sort(),
        expected.sort(),
      )
      assert.ok(
        refusals.some(([start, field]: [string, string]) => start === sentences.emailInvalid && field === 'email'),
      )
      assert.deepEqual([fields.get('content-language'), fields.get('vary')], [tag, 'Accept-Language'])
      const etag = fields.get('etag')!
      tags.add(etag)
      const unchanged = await request('/form.json', { headers: { ...headers, 'if-none-match': etag } })
      assert.deepEqual([unchanged.status, unchanged.headers.get('vary')], [304, 'Accept-Language'])
      const other = { 'accept-language': tag === 'de' ? 'ja' : 'de', 'if-none-match': etag }
      assert.equal((await request('/form.json', { headers: other })).status, 200)
    }
    assert.equal(tags.size, 7)
  })
})

describe('the files of examples/messages', () => {
  test('have every sentence in German, French, Spanish, Portuguese, Japanese and Arabic, with what is filled in', () => {
    assert.deepEqual([...delivered.keys()], ['de', 'fr', 'es', 'pt', 'ja', 'ar'])
    for (const [tag, translation] of delivered) {
      assert.deepEqual(Object.keys(translation).sort(), Object.keys(translatable).sort(), tag)
      const script =
        { ja: /[\p{Script=Hiragana}\p{Script=Han}\p{Script=Katakana}]/u, ar: /\p{Script=Arabic}/u }[tag] ??
        /\p{Script=Latin}/u
      for (const [key, sentence] of Object.entries(translation)) {
        const english = translatable[key]!
        const numbers = (text: string) => text.match(/\d+/g)
        // A word may be the same in two languages.
        if (/[.?…]$/.test(english)) assert.notEqual(sentence, english, `${tag} ${key}`)
        assert.deepEqual([placeholdersIn(sentence), numbers(sentence)], [placeholdersIn(english), numbers(english)])
        assert.ok(key === 'form.told' || script.test(sentence), `${tag} ${key}`)
      }
    }
  })

  test('have in English what the service and its form say by themselves', () => {
    assert.deepEqual([...readMessages(example('en.json'))], [['en', translatable]])
  })
})

describe('a file of messages', { concurrency: true }, () => {
  test('the one that docs/api.md shows can be used', t => {
    const shown = blocksOf(textOf('docs/api.md')).filter(({ language }) => language === 'json')
    const [translations] = shown.map(({ lines }) => readMessages(written(t, lines.join('\n'))))
    assert.deepEqual([...translations!.keys()], ['en', 'nl'])
  })

  const de = (translation: object) => ({ de: translation })
  const mistakes: readonly (readonly [what: string, content: unknown, ...told: string[]])[] = [
    ['no JSON', '{"de": {', "it is not JSON: Expected property name or '}' in JSON at position 8 (line 1 column 9)"],
    ['no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'it is not UTF-8 text'],
    ['a list', [], 'it is not an object of languages'],
    ['nothing', {}, 'it has no languages'],
    ['a file that is too large', ' '.repeat(1_048_577), 'it has more than 1048576 bytes'],
    [
      'too many languages',
      Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`de-x-${i}`, {}])),
      'it has more than 100 languages',
    ],
    ['a language that is none', { german: {} }, '"german" is not a language such as de or pt-BR'],
    ['another one', { de_AT: {} }, '"de_AT" is not a language such as de or pt-BR'],
    ['a third one', { 'de-1': {} }, '"de-1" is not a language such as de or pt-BR'],
    ['one language twice', { 'pt-br': {}, 'pt-BR': {} }, '"pt-BR" is there twice'],
    ['a language without sentences', { de: 'Hallo' }, 'de is not an object of sentences'],
    ['an unknown key', de({ nwe: 'x' }), 'de: "nwe" is none of the keys that are in examples/messages/en.json'],
    [
      'a name of JavaScript',
      '{"de": {"__proto__": "x"}}',
      'de: "__proto__" is none of the keys that are in examples/messages/en.json',
    ],
    ['a number', de({ new: 7 }), 'de: "new" is not text'],
    ['an empty sentence', de({ new: ' ' }), 'de: "new" is empty'],
    ['two lines', de({ new: 'Du bist\ndrauf.' }), 'de: "new" is not one line'],
    ['half a character', '{"de": {"new": "\\ud800"}}', 'de: "new" is not well-formed Unicode text'],
    ['a long sentence', de({ new: 'x'.repeat(181) }), 'de: "new" has more than 180 characters'],
    [
      'a time too often',
      de({ tooManyAttempts: '{wait}'.repeat(10) }),
      'de: "tooManyAttempts" is too long for so many times in it',
    ],
    ['a missing placeholder', de({ tooManyAttempts: 'Später!' }), 'de: "tooManyAttempts" lacks {wait}'],
    ['an unknown placeholder', de({ new: 'Hallo {name}!' }), 'de: "new" has {name}, which nothing is filled in for'],
    ['another placeholder than in English', de({ 'form.thanks': 'Danke, {Name}.' }), 'de: "form.thanks" lacks {name}'],
    ['several', { de: { new: 1 }, fr: { known: '' } }, 'de: "new" is not text', 'fr: "known" is empty'],
  ]
  for (const [what, content, ...told] of mistakes) {
    test(`${what} is refused with what is wrong`, t => {
      const path = written(t, content)
      assert.throws(
        () => readMessages(path),
        (error: Error) => {
          assert.ok(error instanceof OperatorError)
          assert.deepEqual(error.message.split('\n  - '), [`MESSAGES_FILE cannot be used: ${path}:`, ...told])
          return true
        },
      )
    })
  }

  test('one that is not there, a folder and a pipe are refused', t => {
    const folder = temporaryFolder(t)
    assert.throws(() => readMessages(join(folder, 'none.json')), /there is no such file$/)
    mkdirSync(join(folder, 'folder'))
    assert.throws(() => readMessages(join(folder, 'folder')), /it is not a file$/)
    execFileSync('mkfifo', [join(folder, 'pipe')])
    assert.throws(() => readMessages(join(folder, 'pipe')), /it is not a file$/)
  })

  test('a wrong one stops the start of the program', async t => {
    const MESSAGES_FILE = written(t, de({ nwe: 'x', new: '' }))
    const { code, stdout, stderr } = await runCommand(t, temporaryFolder(t), ['serve'], { MESSAGES_FILE, PORT: '0' })
    assert.deepEqual([code, stdout], [1, ''])
    assert.equal(stderr.split('\n').filter(line => line.startsWith('  - de: ')).length, 2)
  })

  const checks: readonly (readonly [what: string, content: unknown, said: RegExp])[] = [
    ['a complete one', delivered.get('de'), /^ok: in de, en$/],
    ['one that lacks sentences', { new: 'x' }, /^note: de lacks \d+ of \d+ sentences, which are told in English$/],
    ['a wrong one', { nwe: 'x' }, /^wrong: MESSAGES_FILE cannot be used: .*"nwe" is none of the keys/s],
  ]
  for (const [what, translation, said] of checks) {
    test(`check: ${what}`, async t => {
      const MESSAGES_FILE = written(t, { de: translation, en: {} })
      const DATABASE_URL = `sqlite:${join(temporaryFolder(t), 'waitlist.db')}`
      const read = await readConfig({ MESSAGES_FILE, DATABASE_URL })
      assert.ok('config' in read)
      const { is, why } = (await checkAll(read.config)).find(({ what }) => what === 'messages')!
      assert.match(`${is}: ${why}`, said)
    })
  }
})
