import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import PostalMime from 'postal-mime'
import { mail } from '../../src/destinations/mail.ts'
import type { MailSettings } from '../../src/destinations/mail-settings.ts'
import { assertDiscreet, joined } from '../contracts/destination.ts'
import { type Exim, eximProgram, login, noExim, startExim } from '../harness/exim.ts'
import { until } from '../harness/program.ts'

const running = new AbortController().signal

describe('through a mail server of Debian', { timeout: 60_000, skip: eximProgram === undefined && noExim }, () => {
  function opened(t: TestContext, { port }: Exim, server: Partial<MailSettings['server']> = {}, subject = 'Hi {name}') {
    const destination = mail({
      server: { host: '127.0.0.1', port, secure: false, login, ...server },
      from: { name: 'Acme', address: 'hello@example.com' },
      subject,
      textFile: null,
      htmlFile: null,
      rate: 6_000,
      service: 'Acme',
      heloName: 'waitlist.example.com',
    })
    t.after(destination.close)
    return destination
  }

  test('mails are encrypted, logged in for, and delivered once each', async t => {
    const exim = await startExim(t)
    const destination = opened(t, exim)
    assert.equal(await destination.check(running), null)
    const events = Array.from({ length: 5 }, (_, i) => joined(i, { name: `Zoë ${i}`, email: `Zoe.${i}@example.com` }))
    for (const result of await Promise.all(events.map(event => destination.deliver(event, running)))) {
      assert.deepEqual(result, { is: 'delivered' })
    }
    await until(() => exim.mails().length === 5)
    for (const [i, source] of exim.mails().toSorted().entries()) {
      // Extended SMTP, over TLS, with a login (RFC 3848).
      assert.match(source, /^Received: from .*\n(?:[ \t].*\n)*?[ \t]+by mail\.example\.com with esmtpsa/m)
      const { to, subject, messageId, text } = await PostalMime.parse(source)
      const event = events.find(({ id }) => messageId === `<${id}@example.com>`)
      assert.ok(event !== undefined, `${i}: ${messageId}`)
      assert.deepEqual([to?.[0]?.address, to?.[0]?.name], [event.contact.email, event.contact.name])
      assert.equal(subject, `Hi ${event.contact.name}`)
      assert.match(text!, /^Hello Zoë \d,/)
    }
  })

  for (const [what, email, more, is, why] of [
    ['an unknown recipient', 'nobody@example.com', {}, 'refused', /RCPT TO was answered with 550/],
    ['greylisting', 'later@example.com', {}, 'unreached', /RCPT TO was answered with 451/],
    ['another domain', 'ada@example.net', {}, 'misconfigured', /RCPT TO was answered with 550 \(relay not permitted\)/],
    [
      'no login',
      'ada@example.com',
      { login: null },
      'misconfigured',
      /RCPT TO was answered with 550 \(relay not permitted\)/,
    ],
    [
      'a wrong password',
      'ada@example.com',
      { login: { ...login, password: 'wrong horse' } },
      'misconfigured',
      /AUTH was answered with 535/,
    ],
  ] as const) {
    test(`${what} is ${is}`, async t => {
      const exim = await startExim(t)
      const outcome = await opened(t, exim, more).deliver(joined(0, { email }), running)
      assert.equal(outcome.is, is, JSON.stringify(outcome))
      assert.match('why' in outcome ? outcome.why : '', why)
      assertDiscreet(outcome, [login.password, 'wrong horse'])
    })
  }

  test('a mail that is refused after its end is refused, and not delivered', async t => {
    const exim = await startExim(t)
    const email = 'ada.lovelace@example.com'
    const outcome = await opened(t, exim, {}, 'refused').deliver(joined(0, { email }), running)
    assert.equal(outcome.is, 'refused', JSON.stringify(outcome))
    assert.match(
      'why' in outcome ? outcome.why : '',
      /^send the mail: DATA was answered with 550 \(This mail for … is refused\)$/,
    )
    assert.deepEqual(exim.mails(), [])
  })
})
