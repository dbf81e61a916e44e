import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bundle, type Embedded, readdressed } from '../scripts/executable/bundle.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const here = join(root, 'src', 'admin', 'page.ts')

describe('what goes into the executable', () => {
  test('is the whole program, with every file that it reads', async () => {
    const { text, packages } = await bundle("import './main.js'", join(root, 'scripts/executable'))
    const read = globSync('src/**/*.*', { cwd: root }).filter(path => !path.endsWith('.ts'))
    assert.ok(read.length > 2)
    for (const path of ['package.json', ...read]) {
      assert.ok(isWithin(text, readFileSync(join(root, path), 'base64')), path)
    }
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
    for (const name of Object.keys(dependencies)) assert.ok(packages.includes(`node_modules/${name}`), name)
  })

  test('is each file that a source names', async () => {
    const embedded: Embedded = {}
    const source = "const style = new URL(\n  './page.css', // beside it\n  import.meta.url,\n)"
    assert.equal(await readdressed(source, here, embedded), 'const style=new URL("embedded:/src/admin/page.css");\n')
    assert.deepEqual(Object.keys(embedded), ['src/admin/page.css'])
  })

  for (const [what, source] of [
    ['a name that is computed', 'const read = (name: string) => readFileSync(new URL(name, import.meta.url))'],
    ['its own folder', 'readFileSync(join(import.meta.dirname, "page.css"))'],
    ['an address that is kept', 'export const here = import.meta.url'],
    ['a file that is not there', "new URL('./nothing.css', import.meta.url)"],
  ] as const) {
    test(`is refused where a source asks for ${what}`, async () => {
      await assert.rejects(readdressed(source, here), /src\/admin\/page\.ts (?:asks|names)/)
    })
  }
})

/** In the main file, or in that of a thread, which is an address in it. */
const isWithin = (text: string, file: string): boolean =>
  [text, ...threadsIn(text)].some(bundled => bundled.includes(file))

const threadsIn = (text: string): readonly string[] =>
  [...text.matchAll(/data:text\/javascript;base64,([\w+/=]+)/g)].map(([, code]) =>
    Buffer.from(code!, 'base64').toString(),
  )
