import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Domains, openDomains } from '../../src/domains/files.ts'
import { OperatorError } from '../../src/waitlist/ports.ts'
import { temporaryFolder } from '../harness/folder.ts'
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

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await wait(50)
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
    await until(() => JSON.stringify(logged).includes('line 2'))
    assert.ok(!accepts('ada@two.example') && accepts('ada@four.example'))
    rmSync(blocked)
    await until(() => JSON.stringify(logged).includes('ENOENT'))
    assert.ok(!accepts('ada@two.example'))
  })

  test('a file that cannot be used at the start is refused, with its setting', async t => {
    const { blocked, allowed, open } = files(t)
    await assert.rejects(
      open(false),
      (error: Error) => error instanceof OperatorError && /BLOCKED_DOMAINS_FILE .*ENOENT/.test(error.message),
    )
    writeFileSync(blocked, 'example.com\n')
    writeFileSync(allowed, Buffer.from([0xff, 0xfe, 0x61, 0x00]))
    await assert.rejects(open(), /ALLOWED_DOMAINS_FILE cannot be used/)
    rmSync(allowed)
    execFileSync('mkfifo', [allowed])
    await assert.rejects(open(), /ALLOWED_DOMAINS_FILE cannot be used: it is not a file/)
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
