import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { drawn } from '../scripts/pictures.ts'
import { anchorsOf, blocksOf, documents, linksIn, root, textOf, typedBy } from './documents.ts'
import { temporaryFolder } from './harness/folder.ts'
import { noHaproxy } from './harness/haproxy.ts'
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
  const source = globSync('{src/**/*.ts,deploy/*.js}', { cwd: root })
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

const conformance = textOf('docs/engineering/conformance.md')
const rows = conformance.split('\n').filter(line => line.startsWith('| C-'))

test('the conformance document has each item from C-1 to C-105 once, in order', () => {
  const items = rows.map(row => Number(/^\| C-(\d+) \|/.exec(row)?.[1]))
  assert.deepEqual(
    items,
    Array.from({ length: 105 }, (_, i) => i + 1),
  )
})

test('every test that the conformance document names exists', () => {
  const named = new Set(conformance.match(/test\/[\w./-]+/g))
  assert.ok(named.size > 20)
  for (const file of named) assert.ok(existsSync(join(root, file)), file)
})

test('an item without a test is one that we do nothing about', () => {
  const untested = rows.filter(row => !row.includes('`test/')).map(row => /C-\d+/.exec(row)?.[0])
  assert.deepEqual(untested, ['C-44'])
})

test('an item that a row gives to a test file is in that file, where it is named by number', () => {
  // TLS, the store and the program's start and stop tell their promises in words.
  const numbered = /^test\/(http\/(?!tls|slow|docs)|waitlist\/)/
  const missing: string[] = []
  for (const row of rows) {
    const item = Number(/^\| C-(\d+) \|/.exec(row)?.[1])
    for (const file of row.match(/test\/[\w./-]+\.ts/g) ?? []) {
      if (numbered.test(file) && !itemsOf(file).has(item)) missing.push(`C-${item} in ${file}`)
    }
  }
  assert.deepEqual(missing, [])
})

/** The items that a test file speaks of, ranges such as `C-72…C-74` included. */
function itemsOf(file: string): Set<number> {
  const source = textOf(file)
  const items = new Set<number>()
  for (const [, first, last] of source.matchAll(/C-(\d+)(?:…C-(\d+))?/g)) {
    for (let item = Number(first); item <= Number(last ?? first); item++) items.add(item)
  }
  return items
}

const security = textOf('docs/engineering/security.md')

test('every door of docs/engineering/security.md names a test, and each of them exists', () => {
  const rows = security.split('\n').filter(line => /^\| (?!door|-)/.test(line) && !line.startsWith('|---'))
  assert.ok(rows.length > 15)
  for (const row of rows) {
    const named = row.match(/test\/[\w./-]+/g) ?? []
    assert.ok(named.length > 0, row)
    for (const file of named) assert.ok(existsSync(join(root, file)), file)
  }
})

test('the settings that it and the security policy name exist', () => {
  const settings = textOf('.env.example')
  for (const name of (textOf('SECURITY.md') + security).match(/(?<=`)[A-Z]+_[A-Z_]+(?=`)/g) ?? [])
    assert.match(settings, new RegExp(`^#${name}=`, 'm'))
})

test('HAProxy takes the router', { skip: noHaproxy ?? false }, t => {
  const [, router] =
    /^```haproxy\n(.*?)^```$/ms.exec(textOf('docs/engineering/scaling.md')) ?? assert.fail('there is no router')
  const file = join(temporaryFolder(t), 'haproxy.cfg')
  const rest = `
defaults
  mode http
  timeout connect 2s
  timeout client 75s
  timeout server 30s
${router!.replace('frontend public', 'frontend public\n  bind 127.0.0.1:1')}
backend part0
  server one 127.0.0.1:2
backend part1
  server two 127.0.0.1:3
`
  writeFileSync(file, rest)
  const { status, stdout, stderr } = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' })
  assert.equal(status, 0, stdout + stderr)
})
