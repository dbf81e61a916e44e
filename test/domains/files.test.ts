import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Domains, openDomains } from '../../src/domains/files.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

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

  test('while a file is being written, the list is the one before', {
    skip: !isSlow && 'it takes seconds; it runs in .ci/run',
  }, async t => {
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
