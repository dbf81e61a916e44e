import assert from 'node:assert/strict'
import { existsSync, globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { drawn } from '../scripts/pictures.ts'
import { anchorsOf, blocksOf, documents, linksIn, root, textOf, typedBy } from './documents.ts'
import { commandsIn } from './harness/help.ts'

const all = documents()

test('every link and picture of every document leads somewhere, to a heading too', () => {
  const broken: string[] = []
  let links = 0
  for (const path of all) {
    for (const { target, found, anchor } of linksIn(path)) {
      links++
      const isThere = existsSync(join(root, found)) && !found.startsWith('..')
      const isKnown = anchor === undefined || (found.endsWith('.md') && isThere && anchorsOf(textOf(found)).has(anchor))
      if (!isThere || !isKnown) broken.push(`${path}: ${target}`)
    }
  }
  assert.deepEqual(broken, [])
  assert.ok(links > 100)
})

test('every page of docs/ is in the index of its folder', () => {
  for (const folder of ['docs', 'docs/engineering']) {
    const index = textOf(`${folder}/README.md`)
    for (const path of all) {
      if (dirname(path) !== folder || path.endsWith('README.md')) continue
      assert.ok(index.includes(`](${path.slice(folder.length + 1)})`), path)
    }
  }
})

test('the commands of every document are typed by a test, which the table names', () => {
  const used = new Set<string>()
  const forgotten: string[] = []
  for (const path of all) {
    for (const { language, under } of blocksOf(textOf(path))) {
      assert.doesNotMatch(
        language,
        /^(bash|shell|console|zsh|cmd)/,
        `${path}: commands are in blocks of the language sh`,
      )
      if (language !== 'sh') continue
      const part = [path, `${path}#${under}`].find(part => part in typedBy)
      if (part === undefined) forgotten.push(`${path}#${under}`)
      else used.add(part)
    }
  }
  assert.deepEqual(forgotten, [], 'add a test that types these, and its line to test/documents.ts')
  assert.deepEqual([...used].sort(), Object.keys(typedBy).sort(), 'the table has no other lines')
})

test('every test of that table reads the document', () => {
  for (const [part, path] of Object.entries(typedBy)) {
    if (path === 'test/docs.commands.test.ts') continue // It reads the table.
    const [document] = part.split('#', 1)
    const name = document!.split('/').at(-1)!
    assert.ok(textOf(path).includes(name), `${path} does not read ${document}`)
  }
})

test('a command that a sentence names is one', async t => {
  const commands = [...(await commandsIn(t)), 'help']
  const named = all.flatMap(path =>
    [...textOf(path).matchAll(/`(?:npm run -s |npx )?waitlist (?:-- )?([a-z]+)[ `]/g)].map(
      ([, name]) => `${path}: ${name}`,
    ),
  )
  assert.ok(named.length > 10)
  assert.deepEqual(
    named.filter(each => !commands.includes(each.split(': ')[1]!)),
    [],
  )
})

test('the sentences of docs/troubleshooting.md are those of the program', () => {
  // A sentence that goes over several lines is one again.
  const source = globSync('src/**/*.ts', { cwd: root })
    .map(path => textOf(path).replaceAll(/['`]\s*\+\s*\n\s*['`]/g, ''))
    .join('\n')
  const symptoms = [...textOf('docs/troubleshooting.md').matchAll(/^\| (.*?) \| .* \| .* \|$/gm)].map(
    ([, cell]) => cell!,
  )
  const sentences = symptoms
    .flatMap(symptom => [...symptom.matchAll(/`([^`]{12,})`/g)].map(([, sentence]) => sentence!))
    .filter(sentence => !/^(https?:|[A-Z_]+=)/.test(sentence))
  const pieces = (sentence: string) => sentence.split('…').map(piece => piece.trim())
  assert.ok(sentences.length > 35)
  assert.deepEqual(
    sentences.filter(sentence => !pieces(sentence).every(piece => source.includes(piece))),
    [],
  )
})

test('the picture of the README can be read on a phone, is light, and comes to rest within five seconds', () => {
  for (const scheme of ['light', 'dark']) {
    const svg = textOf(`docs/pictures/waitlist.${scheme}.svg`)
    const scale = 343 / Number(/viewBox="0 0 (\d+)/.exec(svg)![1])
    for (const [, size] of svg.matchAll(/font-size="(\d+)"/g)) assert.ok(Number(size) * scale >= 9.5, `${size}`)
    assert.ok(Buffer.byteLength(svg) < 300_000)
    assert.deepEqual(svg.match(/animation: [^;}]*/g), ['animation: 5s '])
    assert.match(svg, /@media \(prefers-reduced-motion: no-preference\) \{\n {2}\.play/)
  }
})

test('the pictures are those that scripts/pictures.ts draws', () => {
  assert.deepEqual(globSync('*', { cwd: join(root, 'docs/pictures') }).sort(), [...drawn.keys()].sort())
  for (const [file, svg] of drawn) assert.equal(textOf(`docs/pictures/${file}`), svg, `run node scripts/pictures.ts`)
})
