import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import { checkAll } from '../../src/app/checks.ts'
import { readConfig } from '../../src/config/config.ts'
import { type Domains, openDomains } from '../../src/domains/files.ts'
import { type DomainList, readDomains } from '../../src/domains/list.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

const skip = !isSlow && 'it takes seconds; it runs in .ci/run'

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
    const wrong = '@example.com ada@example.com example .example.com example.com.. **.example.com a..b 192.0.2.1 -a.com'
    for (const line of [...wrong.split(' '), `${'a'.repeat(64)}.com`, 'a b.com', 'https://example.com']) {
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

  test('a million domains take less than 100 MB', { skip }, () => {
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

function files(t: TestContext) {
  const folder = temporaryFolder(t)
  const [blocked, allowed] = [join(folder, 'blocked.txt'), join(folder, 'allowed.txt')]
  const { log, logged } = recordingLog()
  const open = async (withAllowed = true, lookEvery = 100): Promise<Domains> => {
    const domains = await openDomains({ blocked, allowed: withAllowed ? allowed : null }, log, lookEvery)
    t.after(() => domains.close())
    return domains
  }
  return { blocked, allowed, open, logged }
}

describe('files of email domains', { concurrency: true, timeout: 60_000 }, () => {
  test('what is allowed wins, and the case of an address makes no difference', async t => {
    const { blocked, allowed, open } = files(t)
    writeFileSync(blocked, '*.example.com\nexample.com\n')
    writeFileSync(allowed, 'good.example.com\n')
    const { accepts } = await open()
    assert.equal(accepts('ada@Example.COM'), false)
    assert.equal(accepts('ada@bad.example.com'), false)
    assert.equal(accepts('ada@GOOD.example.com'), true)
    assert.equal(accepts('ada@example.org'), true)
  })

  test('a changed file is read again; a bad one, or none, changes nothing, and its line is told', async t => {
    const { blocked, open, logged } = files(t)
    writeFileSync(blocked, 'one.example\n')
    const { accepts } = await open(false)
    writeFileSync(blocked, 'two.example\nthree.example\n')
    await until(() => !accepts('ada@two.example'))
    assert.ok(accepts('ada@one.example'))
    writeFileSync(blocked, 'four.example\nno domain\n')
    await until(() =>
      JSON.stringify(logged).includes('blocked.txt, line 2: not a domain such as example.com or *.example.com'),
    )
    assert.ok(!accepts('ada@two.example') && accepts('ada@four.example'))
    rmSync(blocked)
    await until(() => JSON.stringify(logged).includes('there is no file '))
    assert.ok(!accepts('ada@two.example'))
  })

  test('a file that cannot be used at the start is refused, with its setting, its name and why', async t => {
    const { blocked, allowed, open } = files(t)
    const refuses = (setting: string, why: string) =>
      assert.rejects(open(), (error: Error) => {
        assert.ok(error instanceof OperatorError)
        assert.equal(error.message, `${setting} cannot be used: ${why}`)
        return true
      })
    await refuses('BLOCKED_DOMAINS_FILE', `there is no file ${blocked}`)
    mkdirSync(blocked)
    await refuses('BLOCKED_DOMAINS_FILE', `${blocked} is a folder`)
    rmdirSync(blocked)
    writeFileSync(blocked, 'example.com\n')
    writeFileSync(allowed, Buffer.from([0xff, 0xfe, 0x61, 0x00]))
    await refuses('ALLOWED_DOMAINS_FILE', `${allowed} is not UTF-8 text`)
    rmSync(allowed)
    execFileSync('mkfifo', [allowed])
    await refuses('ALLOWED_DOMAINS_FILE', `${allowed} is not a file`)
  })

  test('a list that blocks nothing, or everybody, is told at the start and whenever it is read', async t => {
    const { blocked, allowed, open, logged } = files(t)
    const warnings = () => logged.filter(({ level }) => level === 40).map(({ msg }) => msg)
    const nothing = 'BLOCKED_DOMAINS_FILE has no domains: nothing is blocked.'
    const everybody = 'BLOCKED_DOMAINS_FILE blocks every domain: nobody can sign up.'
    writeFileSync(blocked, '# none yet\n')
    writeFileSync(allowed, 'example.com\n')
    const { accepts } = await open()
    assert.deepEqual(warnings(), [nothing])
    assert.ok(accepts('ada@example.org'))
    writeFileSync(blocked, '*\n')
    await until(() => !accepts('ada@example.org'))
    assert.ok(accepts('ada@example.com'))
    assert.deepEqual(warnings(), [nothing])
    writeFileSync(allowed, '')
    await until(() => !accepts('ada@example.com'))
    assert.deepEqual(warnings(), [nothing, everybody])
    writeFileSync(blocked, '')
    await until(() => accepts('ada@example.com'))
    assert.deepEqual(warnings(), [nothing, everybody, nothing])
  })

  test('while a file is being written, the list is the one before', { skip }, async t => {
    const { blocked, open, logged } = files(t)
    writeFileSync(blocked, 'one.example\ntwo.example\n')
    const { accepts } = await open(false, 1_000)
    writeFileSync(blocked, 'one.example\n')
    for (let i = 0; i < 8; i++) {
      const began = performance.now()
      await wait(500)
      if (performance.now() - began > 900) return t.skip('this machine is too busy to write a file in time')
      appendFileSync(blocked, `more${i}.example\n`)
      assert.equal(accepts('ada@two.example'), false)
    }
    assert.deepEqual(logged, [])
    await until(() => !accepts('ada@more7.example'))
    assert.equal(accepts('ada@two.example'), true)
  })

  test('a change while a file is read for the first time is seen', async t => {
    const { blocked, open } = files(t)
    writeFileSync(blocked, Array.from({ length: 200_000 }, (_, i) => `d${i}.example\n`).join(''))
    const opening = open(false)
    await wait(60)
    // In one step, so that what is read is one of the two.
    writeFileSync(`${blocked}.new`, 'two.example\n')
    renameSync(`${blocked}.new`, blocked)
    const { accepts } = await opening
    await until(() => !accepts('ada@two.example'))
  })
})

describe('what check says of the files', { concurrency: true }, () => {
  const many = Array.from({ length: 1_200 }, (_, i) => `d${i}.example\n`).join('')
  for (const [said, blocked, allowed] of [
    ['ok: 1 domain is blocked', 'a.example'],
    ['ok: 1,200 domains are blocked, 1 domain is allowed', many, 'a.example'],
    ['ok: every domain is blocked, 2 domains are allowed', '*', 'a.example\nb.example'],
    ['note: BLOCKED_DOMAINS_FILE has no domains: nothing is blocked.', '# none\n'],
    ['note: BLOCKED_DOMAINS_FILE blocks every domain: nobody can sign up.', '*', ''],
    ['note: ALLOWED_DOMAINS_FILE has no domains: there are no exceptions.', 'a.example', ''],
    [
      'wrong: BLOCKED_DOMAINS_FILE cannot be used: blocked.txt, line 2: not a domain such as example.com or *.example.com',
      'a.example\nb',
    ],
  ] as const) {
    test(said, async t => {
      const folder = temporaryFolder(t)
      const env: Record<string, string> = {
        DATABASE_URL: `sqlite:${join(folder, 'waitlist.db')}`,
        BLOCKED_DOMAINS_FILE: join(folder, 'blocked.txt'),
      }
      writeFileSync(env.BLOCKED_DOMAINS_FILE!, blocked)
      if (allowed !== undefined) {
        env.ALLOWED_DOMAINS_FILE = join(folder, 'allowed.txt')
        writeFileSync(env.ALLOWED_DOMAINS_FILE, allowed)
      }
      const read = await readConfig(env)
      assert.ok('config' in read)
      const { is, why } = (await checkAll(read.config)).find(({ what }) => what === 'email domains')!
      assert.equal(`${is}: ${why.replaceAll(`${folder}/`, '')}`, said)
    })
  }
})
