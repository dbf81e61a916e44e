import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import PostalMime from 'postal-mime'
import type { DeliveryResult } from '../../src/delivery/destination.ts'
import { assertDiscreet, joined } from '../delivery/events.ts'
import { type Exim, login as eximLogin, eximProgram, noExim, startExim } from '../harness/exim.ts'
import { type Deed, hang, type MailServerOptions, type Moment, reset, startMailServer } from '../harness/mail-server.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { fixture } from '../harness/tls.ts'
import { type Changes, login, mailing, parsed } from './mailing.ts'

const running = new AbortController().signal
const secrets = [login.password, ...[login.password, `\0${login.user}\0${login.password}`].map(text => btoa(text))]

/** Says it with all that it was told. */
const chatty = (code: string) => `${code} Ada <Ada.Lovelace.0@Example.com> ${login.user} ${secrets.join(' ')}`

const alone = { is: 'unreachable', recipientOnly: true }
const later = { is: 'unreachable' }
const inDoubt = { is: 'in doubt' }

describe('what the answer of the server means', { concurrency: 8 }, () => {
  const cases: readonly (readonly [at: Moment, what: string, Deed, meaning: object])[] = [
    ['RCPT', '550 5.1.1', chatty('550 5.1.1'), { is: 'refused' }],
    ['RCPT', '450 4.1.2', chatty('450 4.1.2'), alone],
    ['RCPT', '421', '421 4.3.2 closing', later],
    ['RCPT', '550 5.7.1, our reputation', chatty('550 5.7.1'), later],
    ['the end', '554 5.7.1, a spam verdict', chatty('554 5.7.1'), later],
    ['the end', '450 4.2.1', chatty('450 4.2.1'), later],
    ['the end', 'a reset', reset, inDoubt],
    ['the end', 'half a line', client => void client.end('250 O'), inDoubt],
    ['MAIL', '550 5.1.8', chatty('550 5.1.8'), { is: 'misconfigured' }],
    ['AUTH', '535 5.7.8', chatty('535 5.7.8'), { is: 'misconfigured' }],
    ['greeting', '554', chatty('554'), { is: 'misconfigured' }],
    ['greeting', 'bytes that are no SMTP', client => void client.write('SSH-2.0-OpenSSH_9.9\r\n'), inDoubt],
  ]
  for (const [at, what, deed, meaning] of cases) {
    test(`${at}: ${what} is ${JSON.stringify(meaning)}`, async t => {
      const server = await startMailServer(t, { login, deed: moment => (moment === at ? deed : null) })
      const outcome = await mailing(t, server, { server: { login } }).deliver(joined(), running)
      const { why, ...rest } = outcome as DeliveryResult & { readonly why?: string }
      assert.deepEqual(rest, meaning, JSON.stringify(outcome))
      assertDiscreet(outcome, [...secrets, login.user])
      assert.equal(server.mails.length, at === 'the end' ? 1 : 0, 'it is sent once')
    })
  }

  test("the reason has the command and the server's own words, cut, without addresses", async t => {
    const no = `550 5.1.1 <Ada.Lovelace.0@Example.com> ${'unknown '.repeat(50)}`
    const server = await startMailServer(t, { deed: moment => (moment === 'RCPT' ? no : null) })
    const outcome = await mailing(t, server).deliver(joined(), running)
    assert.ok('why' in outcome)
    assert.match(outcome.why, /^RCPT TO: 550 5\.1\.1 <…> unknown unknown /)
    assert.ok(outcome.why.length <= 220)
  })

  test('sent again, a mail has the same Message-ID', async t => {
    const server = await startMailServer(t, {
      deed: (moment, count) => (moment === 'the end' && count === 1 ? reset : null),
    })
    const destination = mailing(t, server)
    assert.equal((await destination.deliver(joined(), running)).is, 'in doubt')
    assert.deepEqual(await destination.deliver(joined(), running), { is: 'delivered' })
    const [first, second] = await Promise.all(server.mails.map(parsed))
    assert.equal(first!.messageId, second!.messageId)
  })

  test('nobody listens, or the process stops', async t => {
    const nobody = mailing(t, { host: '127.0.0.1', port: await freePort() })
    const outcome = await nobody.deliver(joined(), running)
    assert.ok('why' in outcome && /ECONNREFUSED/.test(outcome.why), JSON.stringify(outcome))
    const leaving = await startMailServer(t, {
      deed: moment => (moment === 'greeting' ? client => void client.end() : null),
    })
    assert.notEqual((await mailing(t, leaving).deliver(joined(), running)).is, 'delivered')
    assert.equal(leaving.count('greeting'), 1, 'it is tried again by us alone')
    const server = await startMailServer(t, { deed: moment => (moment === 'the end' ? hang : null) })
    const destination = mailing(t, server)
    const stop = new AbortController()
    const outcomes = [0, 1].map(i => destination.deliver(joined(i), stop.signal))
    await until(() => server.count('the end') === 1)
    stop.abort()
    for (const outcome of await Promise.all(outcomes)) assert.equal(outcome.is, 'in doubt')
    assert.equal(server.count('the end'), 1)
  })
})

test('one session is used for one mail after the other, also after a refusal, and left when it is closed', async t => {
  const server = await startMailServer(t, {
    login,
    deed: (moment, _, address) => (moment === 'RCPT' && address.includes('.1@') ? '550 unknown' : null),
  })
  const destination = mailing(t, server, { server: { login } })
  const outcomes = await Promise.all([0, 1, 2, 1, 3].map(i => destination.deliver(joined(i), running)))
  assert.deepEqual(
    outcomes.map(({ is }) => is),
    ['delivered', 'refused', 'delivered', 'refused', 'delivered'],
  )
  assert.deepEqual([server.count('greeting'), server.count('AUTH')], [1, 1])
  destination.close()
  await until(() => server.open() === 0)
})

test('five mails take four intervals of MAIL_RATE at least', async t => {
  const server = await startMailServer(t)
  // Ten a second.
  const destination = mailing(t, server, { rate: 600 })
  const began = performance.now()
  await Promise.all(Array.from({ length: 5 }, (_, i) => destination.deliver(joined(i), running)))
  assert.ok(performance.now() - began > 300)
})

describe('encryption', () => {
  const [cert, key] = ['first.crt', 'first.key'].map(name => readFileSync(fixture(name), 'utf8'))
  const certificate = { cert: cert!, key: key! }
  function trust(t: TestContext): void {
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, certificate.cert])
    t.after(() => setDefaultCACertificates(before))
  }
  /** An address of this machine that is not known for one, as another machine's would be. */
  const elsewhere = '0.0.0.0'
  const encrypted: MailServerOptions = { ...certificate, disabledCommands: [], allowInsecureAuth: false, login }

  for (const [what, options, server] of [
    ['smtps', { ...certificate, secure: true, login }, { host: 'localhost', secure: true, login }],
    ['smtp to another machine', encrypted, { host: elsewhere, login }],
  ] as const satisfies readonly (readonly [string, MailServerOptions, Changes['server']])[]) {
    test(`${what} is encrypted before the login, with a certificate that must be trusted`, async t => {
      const there = await startMailServer(t, options)
      const distrusted = await mailing(t, there, { server }).deliver(joined(), running)
      assert.notEqual(distrusted.is, 'delivered')
      assert.equal(there.count('AUTH'), 0)
      trust(t)
      assert.deepEqual(await mailing(t, there, { server }).deliver(joined(), running), { is: 'delivered' })
      assert.deepEqual(
        there.mails.map(({ secure, user }) => [secure, user]),
        [[true, login.user]],
      )
    })
  }

  test('where another machine offers no STARTTLS, nobody logs in and nothing is sent', async t => {
    const server = await startMailServer(t, { login })
    const outcome = await mailing(t, server, { server: { host: elsewhere, login } }).deliver(joined(), running)
    assert.equal(outcome.is, 'misconfigured', JSON.stringify(outcome))
    assert.deepEqual([server.count('AUTH'), server.mails.length], [0, 0])
  })

  test('this machine is encrypted to where it offers it, whatever its certificate', async t => {
    const server = await startMailServer(t, { ...certificate, disabledCommands: ['AUTH'] })
    assert.deepEqual(await mailing(t, server).deliver(joined(), running), { is: 'delivered' })
    assert.equal(server.mails[0]!.secure, true)
  })
})

describe('through Exim', { skip: eximProgram === undefined && noExim }, () => {
  let exim: Exim
  const ends: (() => unknown)[] = []
  before(async () => {
    exim = await startExim({ after: (end: () => unknown) => void ends.push(end) } as Pick<TestContext, 'after'>)
  })
  after(async () => {
    for (const end of ends) await end()
  })
  const through = (t: TestContext, server: Changes['server'] = {}, service = 'Acme') =>
    mailing(t, { host: '127.0.0.1', port: exim.port }, { service, server: { login: eximLogin, ...server } })

  test('mails are encrypted, logged in for, and delivered once each', async t => {
    const destination = through(t)
    assert.equal(await destination.check(), null)
    const events = Array.from({ length: 5 }, (_, i) => joined(i, { name: `Zoë ${i}`, email: `Zoe.${i}@example.com` }))
    for (const result of await Promise.all(events.map(event => destination.deliver(event, running))))
      assert.deepEqual(result, { is: 'delivered' })
    await until(() => exim.mails().length === 5)
    for (const source of exim.mails()) {
      // Extended SMTP, over TLS, with a login (RFC 3848).
      assert.match(source, /^Received: from .*\n(?:[ \t].*\n)*?[ \t]+by mail\.example\.com with esmtpsa/m)
      const { to, messageId, text } = await PostalMime.parse(source)
      const event = events.find(({ id }) => messageId?.startsWith(`<${id}_`))
      assert.deepEqual([to?.[0]?.address, to?.[0]?.name], [event?.contact.email, event?.contact.name])
      assert.match(text!, /^Hi Zoë \d,/)
    }
  })

  for (const [what, email, server, is, why] of [
    ['an unknown recipient', 'nobody@example.com', {}, 'refused', /^RCPT TO: 550/],
    ['no login', 'ada@example.com', { login: null }, 'unreachable', /^RCPT TO: 550 relay not permitted/],
    [
      'a wrong password',
      'ada@example.com',
      { login: { ...eximLogin, password: 'wrong horse' } },
      'misconfigured',
      /^login: 535/,
    ],
  ] as const) {
    test(`${what} is ${is}`, async t => {
      const outcome = await through(t, server).deliver(joined(0, { email }), running)
      assert.equal(outcome.is, is, JSON.stringify(outcome))
      assert.match('why' in outcome ? outcome.why : '', why)
      assertDiscreet(outcome, [eximLogin.password, 'wrong horse'])
    })
  }

  test('a mail that is refused after its end waits', async t => {
    const outcome = await through(t, {}, 'refused').deliver(joined(0, { email: 'ada.lovelace@example.com' }), running)
    assert.deepEqual(outcome, { is: 'unreachable', why: 'DATA: 550 This mail for … is refused' })
  })
})
