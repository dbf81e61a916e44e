import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type DomainList, readDomains } from '../../src/domains/list.ts'
import { isSlow } from '../harness/slow.ts'

async function list(...lines: readonly string[]): Promise<DomainList> {
  const read = await readDomains(lines.join('\n'))
  assert.ok('has' in read, JSON.stringify(read))
  return read
}

describe('a list of email domains', () => {
  test('a domain is itself alone, with an asterisk all below it, and an asterisk is every domain', async () => {
    const { has, size } = await list('example.com', '*.example.net', 'deep.example.org')
    assert.equal(size, 3)
    const cases = {
      'example.com': true,
      'mail.example.com': false,
      'example.net': false,
      'mail.example.net': true,
      'a.b.example.net': true,
      'notexample.net': false,
      'deep.example.org': true,
      'example.org': false,
      com: false,
    }
    for (const [domain, expected] of Object.entries(cases)) assert.equal(has(domain), expected, domain)
    assert.equal((await list('*')).has('example.com'), true)
  })

  test('comments, empty lines, spaces, case, a dot at the end, line ends of Windows and a byte order mark are read as they are meant', async () => {
    const { has, size } = await list(
      '\uFEFF# ours',
      '',
      '  Example.COM\t# a comment\r',
      '\r',
      'B\u00FCcher.example',
      '*.XN--BCHER-KVA.example',
      'root.example.',
      '*.root.example.',
    )
    assert.equal(size, 5)
    assert.ok(has('root.example') && has('mail.root.example'))
    assert.ok(has('example.com'))
    assert.ok(has('xn--bcher-kva.example'))
    assert.ok(has('mail.xn--bcher-kva.example'))
  })

  test('a line that is no domain is named by its number', async () => {
    const wrong = [
      '@example.com',
      'ada@example.com',
      'example',
      '.example.com',
      'example.com..',
      '*',
      '**.example.com',
      'a..b',
      '192.0.2.1',
      '-a.com',
      `${'a'.repeat(64)}.com`,
      'a b.com',
      'https://example.com',
    ]
    for (const line of wrong.filter(each => each !== '*')) {
      const read = await readDomains(`example.org\n\n${line}\nexample.net`)
      assert.deepEqual('line' in read && read.line, 3, line)
    }
  })

  test('whatever is in it, it has what a set has', async () => {
    const label = fc.stringMatching(/^[a-z][a-z0-9]{0,3}$/)
    const domain = fc.array(label, { minLength: 2, maxLength: 4 }).map(labels => labels.join('.'))
    await fc.assert(
      fc.asyncProperty(
        fc.array(domain, { maxLength: 3_000 }),
        fc.array(domain, { maxLength: 100 }),
        async (inside, others) => {
          const { has, size } = await list(...inside)
          const set = new Set(inside)
          assert.equal(size, set.size)
          for (const each of [...inside, ...others]) assert.equal(has(each), set.has(each), each)
        },
      ),
      { numRuns: 50 },
    )
  })

  test('a million domains take less than 100 MB', { skip: !isSlow && 'it takes seconds; it runs in .ci/run' }, () => {
    const list = new URL('../../src/domains/list.ts', import.meta.url)
    // In a process of its own, whose memory nobody else uses. A list of a million lines is read while another one is used.
    const program = `
      import { readDomains } from ${JSON.stringify(list.href)}
      const text = Array.from({ length: 1_000_000 }, (_, i) => 'mail-' + i + '.example-' + (i % 977) + '.com').join('\\n')
      const bytes = () => {
        globalThis.gc()
        const { heapUsed, arrayBuffers } = process.memoryUsage()
        return heapUsed + arrayBuffers
      }
      const before = bytes()
      const read = await readDomains(text)
      console.log(JSON.stringify({ size: read.size, bytes: bytes() - before, has: read.has('mail-999999.example-528.com') }))`
    const out = execFileSync(process.execPath, ['--expose-gc', '--input-type=module-typescript', '-e', program], {
      encoding: 'utf8',
    })
    const { size, bytes, has } = JSON.parse(out)
    assert.deepEqual({ size, has }, { size: 1_000_000, has: true })
    assert.ok(bytes < 100_000_000, `${bytes} bytes`)
  })
})
