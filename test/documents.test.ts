import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { drawn } from '../scripts/pictures.ts'
import { anchorsOf, documents, linksIn, root, textOf } from './documents.ts'
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

test('the settings that the security policy and docs/engineering/security.md name exist', () => {
  const settings = textOf('.env.example')
  const security = textOf('docs/engineering/security.md')
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
