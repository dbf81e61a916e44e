import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { OperatorError } from '../../src/config/operator.ts'
import { isBlocked, openDomains, readDomains } from '../../src/holds/domains.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { recordingLog } from '../harness/log.ts'
import { logOf, runProgram, until } from '../harness/program.ts'

function fileOf(t: TestContext, text: string): string {
  const path = join(temporaryFolder(t), 'blocked.txt')
  writeFileSync(path, text)
  return path
}

describe('a list of email domains', () => {
  test('a domain stands for its subdomains, an exception for its own, and the longest decides', t => {
    const text =
      '\uFEFF# ours\n\n!good.example.com\n  Example.COM.\t# a comment\r\nbad.good.example.com\nBücher.example\nduck.example\n!duck.example'
    const list = readDomains(fileOf(t, `${text}\nduck.example`))
    for (const [domain, expected] of Object.entries({
      'example.com': true,
      'Mail.EXAMPLE.com': true,
      'notexample.com': false,
      'good.example.com': false,
      'mail.good.example.com': false,
      'bad.good.example.com': true,
      'a.bad.good.example.com': true,
      'mail.xn--bcher-kva.example': true,
      'duck.example': false,
      com: false,
    })) {
      assert.equal(isBlocked(`ada@${domain}`, list), expected, domain)
    }
  })

  test('a line that is no domain is named by its number, and a file that is not there by its path', t => {
    const wrong =
      '@example.com ada@example.com example .example.com *.example.com * ! a..b 192.0.2.1 -a.com https://example.com'
    for (const line of [...wrong.split(' '), `${'a'.repeat(64)}.com`, 'a b.com']) {
      const path = fileOf(t, `example.org\n\n${line}\nexample.net`)
      const message = `BLOCKED_DOMAINS_FILE cannot be used: ${path}, line 3: not a domain such as example.com or !example.com`
      assert.throws(() => readDomains(path), new OperatorError(message), line)
    }
    assert.throws(() => readDomains('/none.txt'), /^OperatorError: BLOCKED_DOMAINS_FILE cannot be used: .*\/none\.txt/)
  })

  test('it is read again on demand; a bad file changes nothing, and its line is told', t => {
    const path = fileOf(t, 'one.example\n')
    const { log, logged } = recordingLog()
    const { accepts, reload } = openDomains(path, log)
    writeFileSync(path, 'two.example\n')
    assert.ok(!accepts('ada@one.example') && accepts('ada@two.example'))
    reload()
    assert.ok(accepts('ada@one.example') && !accepts('ada@two.example'))
    writeFileSync(path, 'one.example\nno domain\n')
    reload()
    assert.ok(accepts('ada@one.example') && !accepts('ada@two.example'))
    assert.match(JSON.stringify(logged.at(-1)), /blocked\.txt, line 2: not a domain/)
  })

  test('SIGHUP reads it again, and does not stop the service', async t => {
    const path = fileOf(t, 'one.example\n')
    const env = { PORT: '0', HOST: '127.0.0.1', SHUTDOWN_DELAY: '0', BLOCKED_DOMAINS_FILE: path }
    const program = await runProgram(t, env, { cwd: temporaryFolder(t) })
    program.process.kill('SIGHUP')
    await until(() => logOf(program).some(({ msg }) => msg === 'the list of email domains was read again'))
    assert.equal((await fetch(`${program.baseUrl}/api/health`)).status, 200)
  })
})
