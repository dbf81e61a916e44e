import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { typedIn } from '../src/invocation.ts'

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
