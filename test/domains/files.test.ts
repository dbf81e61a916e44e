import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { type Domains, openDomains } from '../../src/domains/files.ts'
import { OperatorError } from '../../src/waitlist/ports.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { recordingLog } from '../harness/service.ts'

function files(t: TestContext) {
  const folder = temporaryFolder(t)
  const [blocked, allowed] = [join(folder, 'blocked.txt'), join(folder, 'allowed.txt')]
  const { log, logged } = recordingLog()
  const open = async (withAllowed = true): Promise<Domains> => {
    const domains = await openDomains({ blocked, allowed: withAllowed ? allowed : null }, log)
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
  })
})
