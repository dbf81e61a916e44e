import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { checkAll } from '../../src/app/checks.ts'
import { type CertificateListener, firstCertificate, watchCertificate } from '../../src/http/tls.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { inDays, selfSigned } from '../harness/certificate.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { complaintsIn, logOf, runProgram, until } from '../harness/program.ts'
import { startService, type TestService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import {
  assertModernOnly,
  assertNoRenegotiation,
  ca,
  certificateOf,
  fixture,
  handshake,
  http1,
  json,
  pairIn,
  someone,
  startTls,
  usePair,
} from '../harness/tls.ts'

describe('over TLS', { concurrency: true }, () => {
  test('C-99: HTTP/1.1 is the one protocol; who offers only others hears so in the handshake', async t => {
    const service = await startTls(t)
    assert.match(service.baseUrl, /^https:/)
    for (const [ALPNProtocols, expected] of [
      [['h2', 'http/1.1'], 'http/1.1'],
      [['http/1.1'], 'http/1.1'],
      [[], false],
    ] as const) {
      const socket = await handshake(service, { ALPNProtocols: [...ALPNProtocols] })
      assert.ok(!(socket instanceof Error), String(socket))
      assert.equal(socket.alpnProtocol, expected)
      socket.destroy()
    }
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      for (const offered of ['h2', 'spdy/3']) {
        const refused = await handshake(service, { ALPNProtocols: [offered], maxVersion })
        // RFC 7301 §3.2
        assert.equal((refused as NodeJS.ErrnoException).code, 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', offered)
      }
    }

    const answer = await http1(service.baseUrl, '/api/waitlist', 'POST', json, someone('one'))
    assert.equal(answer.status, 200)
    assert.match(answer.headers.get('set-cookie')!, /^__Host-waitlist=1; .*Secure/)
  })

  test('C-98: TLS 1.1 and ciphers without forward secrecy or authentication are refused', async t => {
    await assertModernOnly(await startTls(t))
  })

  test('C-98: a client that renegotiates is cut off', async t => {
    await assertNoRenegotiation(await startTls(t))
  })

  test('C-102: plain HTTP on the TLS port gets no answer, and the connection is closed', async t => {
    const { baseUrl } = await startTls(t)
    const socket = connect(Number(new URL(baseUrl).port), '127.0.0.1')
    let received = ''
    socket.setEncoding('latin1').on('data', chunk => {
      received += chunk
    })
    socket.on('error', () => {})
    socket.write('GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'close')
    assert.doesNotMatch(received, /HTTP|\{/)
    assert.equal((await http1(baseUrl, '/api/health')).status, 200)
  })

  test('clients that ask again as soon as they are answered get each answer, on one connection each', async t => {
    const { env } = pairIn(t)
    // Another process, which can be slower than its clients.
    const { baseUrl } = await runProgram(t, { ...env, HOST: '127.0.0.1' }, { cwd: temporaryFolder(t) })
    const asksAgain = async () => {
      const socket = connectTls({ host: '127.0.0.1', port: Number(new URL(baseUrl).port), ca })
      t.after(() => socket.destroy())
      let [received, answers] = ['', 0]
      const ask = () => socket.write('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n')
      socket.setEncoding('latin1').on('data', chunk => {
        received += chunk
        if (!received.endsWith('}')) return
        received = ''
        if (++answers === 200) socket.end()
        else ask()
      })
      ask()
      await once(socket, 'close')
      return answers
    }
    assert.deepEqual(await Promise.all(Array.from({ length: 32 }, asksAgain)), Array(32).fill(200))
  })

  test('HSTS is on every answer over TLS, for this host alone, and on none in the clear', async t => {
    const tls = await startTls(t)
    for (const path of ['/', '/api/health', '/api/waitlist', '/docs/api', '/nothing']) {
      const answer = await http1(tls.baseUrl, path)
      assert.equal(answer.headers.get('strict-transport-security'), 'max-age=31536000', path)
    }
    const clear = await startService(t)
    const plain = await fetch(`${clear.baseUrl}/api/health`)
    assert.equal(plain.headers.get('strict-transport-security'), null)
    await plain.text()
  })
})

/** Milliseconds within which a changed file is read. */
const NOTICED = 1_500
const complaints = ({ logged }: TestService) =>
  logged.filter(({ msg }) => /cannot be used; the old one stays/.test(String(msg)))

describe('the certificate', { concurrency: true }, () => {
  test('C-101: is reloaded when its files change; a bad pair keeps the old one and is logged', async t => {
    const files = pairIn(t)
    const service = await startService(t, files.env)
    assert.equal(await certificateOf(service), 'CN=first')
    const open = await handshake(service, {})
    assert.ok(!(open instanceof Error), String(open))

    usePair(files, 'second')
    await until(async () => (await certificateOf(service)) === 'CN=second')
    open.write('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n')
    assert.match(String(await once(open, 'data')), /^HTTP\/1\.1 200 /, 'open connections stay')
    open.destroy()
    await assertModernOnly(service)

    copyFileSync(fixture('first.crt'), files.cert)
    service.reload()
    const [complaint, ...more] = complaints(service)
    assert.match(String(complaint?.why), /TLS_CERT_FILE and the key in TLS_KEY_FILE do not belong together/)
    assert.deepEqual([complaint?.level, more], [40, []])
    assert.equal(await certificateOf(service), 'CN=second')

    usePair(files, 'first')
    await until(async () => (await certificateOf(service)) === 'CN=first')
  })

  test('SIGHUP reloads it at once', async t => {
    const { env } = pairIn(t)
    const common = { PORT: '0', HOST: '127.0.0.1', SHUTDOWN_DELAY: '0' }
    const tls = await runProgram(t, { ...common, ...env }, { cwd: temporaryFolder(t) })
    tls.process.kill('SIGHUP')
    await until(() => logOf(tls).some(({ msg }) => msg === 'the TLS certificate was reloaded'))
    assert.equal(await certificateOf(tls), 'CN=first')
  })

  for (const order of [
    ['key', 'cert'],
    ['cert', 'key'],
  ] as const) {
    test(`a change from RSA to ECDSA, the ${order[0]} first, fails no handshake at any moment and logs nothing`, {
      skip: !isSlow && order[0] === 'cert' && 'it runs in .ci/run',
    }, async t => {
      const [rsa, ecdsa] = [selfSigned({ kind: 'rsa', name: 'rsa' }), selfSigned({ kind: 'ec', name: 'ecdsa' })]
      const folder = temporaryFolder(t)
      const files = { cert: join(folder, 'fullchain.pem'), key: join(folder, 'privkey.pem') }
      /** As certbot does it: a new file, and a symbolic link that is replaced in one step. */
      const renew = (which: 'cert' | 'key', pair: Record<'cert' | 'key', string>) => {
        const archived = join(folder, `${which}-${pair === rsa ? 1 : 2}.pem`)
        writeFileSync(archived, pair[which])
        symlinkSync(archived, `${files[which]}.new`)
        renameSync(`${files[which]}.new`, files[which])
      }
      for (const which of order) renew(which, rsa)
      const service = await startService(t, { TLS_CERT_FILE: files.cert, TLS_KEY_FILE: files.key })

      let running = true
      const seen: unknown[] = []
      const visitor = async () => {
        while (running) {
          const socket = await handshake(service, { ca: [rsa.cert, ecdsa.cert] })
          if (socket instanceof Error) return seen.push(socket)
          seen.push(socket.getPeerX509Certificate()?.subject)
          socket.destroy()
        }
      }
      const visitors = [visitor(), visitor(), visitor()]
      await until(() => seen.length > 0)
      renew(order[0], ecdsa)
      await setTimeout(NOTICED)
      assert.equal(seen.at(-1), 'CN=rsa', 'half of a pair is not used')
      renew(order[1], ecdsa)
      await until(() => seen.at(-1) !== 'CN=rsa')
      running = false
      await Promise.all(visitors)

      assert.deepEqual([...new Set(seen)], ['CN=rsa', 'CN=ecdsa'])
      const warnings = complaintsIn(service.logged)
      assert.deepEqual(warnings, [])
    })
  }

  test('files that still do not fit after a while are told of once, and taken as soon as they do', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const { files, events } = watched(t, 'first')
    writeFileSync(files.key, selfSigned({ kind: 'rsa', name: 'another' }).key)
    await until(() => events.length > 0)
    await setTimeout(NOTICED)
    assert.match(events.join(), /^rejected: .* do not belong together \(ec and rsa\)$/)
    usePair(files, 'second')
    await until(() => events.length > 1)
    assert.equal(events[1], 'used')
  })

  test('a pair that cannot be used keeps the service from starting, in a sentence that names the settings', async t => {
    const { cert, key } = pairIn(t)
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'nonsense'), 'nonsense')
    const rsa = join(folder, 'rsa')
    writeFileSync(rsa, selfSigned({ kind: 'rsa', name: 'rsa' }).key)
    for (const [TLS_CERT_FILE, TLS_KEY_FILE] of [
      [cert, fixture('second.key').pathname],
      [cert, rsa],
      [join(folder, 'missing'), key],
      [cert, join(folder, 'missing')],
      [join(folder, 'nonsense'), key],
      [cert, join(folder, 'nonsense')],
      [key, cert],
      [folder, key],
      [cert, '/dev/zero'],
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

describe('a certificate that expires', { concurrency: true }, () => {
  const pairUntil = (t: TestContext, to: Date) => {
    const files = pairIn(t)
    const pair = selfSigned({ kind: 'ec', name: 'expiring', from: inDays(-400), to })
    writeFileSync(files.cert, pair.cert)
    writeFileSync(files.key, pair.key)
    return { ...files, cert: pair.cert, key: pair.key }
  }

  test('is warned of at the start, at a reload, and by `waitlist check`', async t => {
    for (const [days, says, result] of [
      [-1.5, /expired on .* 1 day ago, and clients refuse it/, 'wrong'],
      [10.5, /expires on .* in 10 days/, 'note'],
      [100, null, 'ok'],
    ] as const) {
      const service = await startService(t, pairUntil(t, inDays(days)).env)
      service.reload()
      const warnings = complaintsIn(service.logged).map(({ msg }) => String(msg))
      assert.equal(warnings.length, says === null ? 0 : 2, warnings.join('\n'))
      const trial = (await checkAll(service.config)).find(({ what }) => what === 'certificate')!
      assert.equal(trial.is, result)
      for (const sentence of [...warnings, trial.why]) if (says !== null) assert.match(sentence, says)
    }
  })

  test('is told of once a day, also when the clock jumps, and no more once it is renewed', t => {
    const to = new Date('2030-06-30T12:00:00Z')
    let now = Date.parse('2030-06-15T00:30:00Z')
    t.mock.method(Date, 'now', () => now)
    t.mock.timers.enable({ apis: ['setInterval'] })
    const { events, files, watch } = watched(t, selfSigned({ kind: 'ec', name: 'expiring', to }))
    const hours = (count: number) => {
      for (let i = 0; i < count; i++) {
        now += 3_600_000
        t.mock.timers.tick(3_600_000)
      }
      return events.splice(0)
    }
    assert.deepEqual(hours(24), [], 'more than two weeks are left')
    assert.match(hours(24).join(), /^[^,]*, in 13 days[^,]*$/)
    assert.match(hours(72).join(), /^[^,]*, in 12 days[^,]*,[^,]*, in 11 days[^,]*,[^,]*, in 10 days[^,]*$/)
    now = Date.parse('2031-01-01T00:00:00Z')
    assert.match(hours(1).join(), /184 days ago/)
    now = Date.parse('2030-06-29T00:00:00Z')
    assert.match(hours(1).join(), /in 1 day\./)

    usePair(files, 'second')
    watch.reload()
    assert.deepEqual(events.splice(0), ['used'])
    assert.deepEqual(hours(1_000), [])
    // At once, since other tests run at the same time.
    t.mock.timers.reset()
    t.mock.restoreAll()
  })
})

/** A watch over files, and what it tells. What does not fit is told after 100 ms. */
function watched(t: TestContext, pair: 'first' | { cert: string; key: string }) {
  const files = pairIn(t)
  if (pair !== 'first') {
    writeFileSync(files.cert, pair.cert)
    writeFileSync(files.key, pair.key)
  }
  const events: string[] = []
  const listener: CertificateListener = {
    use: () => events.push('used'),
    reject: ({ message }) => events.push(`rejected: ${message}`),
    warn: sentence => events.push(sentence),
  }
  const names = { certFile: files.cert, keyFile: files.key }
  const watch = watchCertificate(names, firstCertificate(names), listener, 100)
  t.after(() => watch.stop())
  return { files, events, watch }
}
