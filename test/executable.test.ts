import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { bundle, type Embedded, readdressed } from '../scripts/executable/bundle.ts'
import { typedIn } from '../src/invocation.ts'

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

const ways = [
  [
    'in a clone',
    '/home/ada/waitlist/bin/waitlist.js',
    'npm run -s waitlist export',
    'npm run -s waitlist -- list -l 5',
  ],
  ['in a package', '/srv/node_modules/.bin/waitlist', 'npx waitlist export', 'npx waitlist list -l 5'],
  ['in a package, by its file', '/srv/node_modules/waitlist/bin/waitlist.js', 'npx waitlist export'],
  ['on Windows', String.raw`C:\srv\node_modules\waitlist\bin\waitlist.js`, 'npx waitlist export'],
  ['on the PATH', '/usr/local/bin/waitlist', 'waitlist export', 'waitlist list -l 5'],
  ['in another program, as in a test', '/srv/test.ts', 'waitlist export'],
] as const

describe('what is typed', () => {
  for (const [where, entry, plain, withOption] of ways) {
    test(`${where}: ${plain}`, () => {
      const typed = typedIn({ argv0: 'node', entry })
      assert.equal(typed('waitlist export'), plain)
      if (withOption !== undefined) assert.equal(typed('waitlist list -l 5'), withOption)
    })
  }

  test('for the executable it is what was typed for it', () => {
    for (const argv0 of ['./waitlist', 'waitlist', '/opt/waitlist']) {
      const typed = typedIn({ argv0, entry: argv0 })
      assert.equal(typed('waitlist list -l 5'), `${argv0} list -l 5`)
    }
  })

  test('npm is kept from taking options, and a lone dash, for its own', () => {
    const typed = typedIn({ argv0: 'node', entry: '/home/ada/waitlist/bin/waitlist.js' })
    assert.equal(typed('waitlist import -'), 'npm run -s waitlist -- import -')
    assert.equal(typed('waitlist show ada@first-list.example'), 'npm run -s waitlist show ada@first-list.example')
  })
})
