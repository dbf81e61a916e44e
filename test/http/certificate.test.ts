import assert from 'node:assert/strict'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { OperatorError } from '../../src/waitlist/ports.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, runProgram, until } from '../harness/program.ts'
import { startService } from '../harness/service.ts'
import { assertModernOnly, certificateOf, fixture, http2, http2Session, pairIn, usePair } from '../harness/tls.ts'

describe('the certificate', { concurrency: true, timeout: 60_000 }, () => {
  test('C-101: is reloaded when its files change; a bad pair keeps the old one and is logged', async t => {
    const files = pairIn(t)
    const service = await startService(t, files.env)
    assert.equal(await certificateOf(service), 'CN=first')
    const open = await http2Session(t, service.baseUrl)

    usePair(files, 'second')
    await until(async () => (await certificateOf(service)) === 'CN=second')
    assert.equal((await http2(open, '/api/health')).status, 200, 'open connections stay')
    await assertModernOnly(service)

    writeFileSync(files.cert, 'not a certificate')
    const complained = () => service.logged.some(({ msg }) => /cannot be used; the old one stays/.test(String(msg)))
    await until(complained)
    assert.equal(await certificateOf(service), 'CN=second')

    usePair(files, 'first')
    await until(async () => (await certificateOf(service)) === 'CN=first')
  })

  test('a certificate without its own key is refused at a reload too', async t => {
    const files = pairIn(t)
    const service = await startService(t, files.env)
    copyFileSync(fixture('second.crt'), files.cert)
    service.reloadCertificate()
    assert.ok(service.logged.some(({ msg }) => /cannot be used; the old one stays/.test(String(msg))))
    assert.equal(await certificateOf(service), 'CN=first')
  })

  test('SIGHUP reloads it at once; without TLS it ends the process, as it does by default', async t => {
    const { env } = pairIn(t)
    const common = { PORT: '0', HOST: '127.0.0.1', SHUTDOWN_DELAY: '0' }
    const tls = await runProgram(t, { ...common, ...env }, { cwd: temporaryFolder(t) })
    tls.process.kill('SIGHUP')
    await until(() => logOf(tls).some(({ msg }) => msg === 'the TLS certificate was reloaded'))
    assert.equal(await certificateOf(tls), 'CN=first')

    const clear = await runProgram(t, common, { cwd: temporaryFolder(t) })
    await clear.end('SIGHUP')
    assert.equal(clear.process.signalCode, 'SIGHUP', 'a closed terminal leaves nothing behind')
  })

  test('a pair that cannot be used keeps the service from starting, in a sentence that names the settings', async t => {
    const { cert, key } = pairIn(t)
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'nonsense'), 'nonsense')
    for (const [TLS_CERT_FILE, TLS_KEY_FILE] of [
      [cert, fixture('second.key').pathname],
      [join(folder, 'missing'), key],
      [cert, join(folder, 'missing')],
      [join(folder, 'nonsense'), key],
      [cert, join(folder, 'nonsense')],
      [key, cert],
      [folder, key],
    ] as [string, string][]) {
      await assert.rejects(startService(t, { TLS_CERT_FILE, TLS_KEY_FILE }), (error: Error) => {
        assert.ok(error instanceof OperatorError, String(error))
        assert.match(error.message, /^TLS_CERT_FILE and TLS_KEY_FILE cannot be used: /)
        assert.doesNotMatch(error.message, /BEGIN|PRIVATE/)
        return true
      })
    }
  })
})
