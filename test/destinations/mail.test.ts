import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import type { AxeResults } from 'axe-core'
import fc from 'fast-check'
import PostalMime from 'postal-mime'
import { type Links, linksOf } from '../../src/confirm/token.ts'
import { mail } from '../../src/destinations/mail.ts'
import { mailWriter } from '../../src/destinations/mail-message.ts'
import type { Letter, MailSettings } from '../../src/destinations/mail-settings.ts'
import { type Judgement, judgeRefusal } from '../../src/destinations/smtp-reply.ts'
import { escapeHtml } from '../../src/pages/html.ts'
import { eventOf } from '../../src/signup/contact.ts'
import type { DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import { assertDiscreet, assertSensible, CODE, invited, joined } from '../contracts/destination.ts'
import { selfSigned } from '../harness/certificate.ts'
import { type Exim, login as eximLogin, eximProgram, noExim, startExim } from '../harness/exim.ts'
import { temporaryFolder } from '../harness/folder.ts'
import {
  type Deed,
  end,
  garbage,
  halfALine,
  hang,
  longLine,
  type MailServer,
  type MailServerOptions,
  type Moment,
  moments,
  type ReceivedMail,
  reset,
  say,
  startMailServer,
  withoutEnd,
} from '../harness/mail-server.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'

const login = { user: 'postmaster', password: 'correct horse' }
const secrets = [login.password, ...[login.password, `\0${login.user}\0${login.password}`].map(text => btoa(text))]
const running = new AbortController().signal

/** What a letter has is that of the welcome mail. */
type More = Omit<Partial<MailSettings>, 'server' | 'letters'> &
  Partial<Letter> & { readonly server?: Partial<MailSettings['server']>; readonly invitation?: Partial<Letter> }

const links = linksOf('https://waitlist.acme.example', 'ab'.repeat(32), () => Date.UTC(2026, 10, 1))

function opened(
  t: Pick<TestContext, 'after'>,
  { host, port }: Pick<MailServer, 'host' | 'port'>,
  given: More = {},
  linked: (() => Links) | null = null,
) {
  const { subject, textFile, htmlFile, invitation, ...more } = given
  const welcome = { ...(subject && { subject }), ...(textFile && { textFile }), ...(htmlFile && { htmlFile }) }
  const settings = {
    from: { name: 'Acme', address: 'hello@acme.example' },
    tells: ['joined', 'invited'],
    letters: {
      joined: { subject: '{service}: you are on the list', textFile: null, htmlFile: null, ...welcome },
      invited: { subject: '{service}: you are invited', textFile: null, htmlFile: null, ...invitation },
      confirmation: { subject: '{service}: please confirm your address', textFile: null, htmlFile: null },
    },
    inviteLink: null,
    rate: 6_000,
    service: 'Acme',
    heloName: 'waitlist.acme.example',
    ...more,
    server: { host, port, secure: false, login: null, ...more.server },
  } as const
  const destination = mail(settings, linked)
  t.after(destination.close)
  return destination
}

const parsed = ({ source }: ReceivedMail) => PostalMime.parse(source)
/** The names of the fields of a head, in lower case. */
const fieldsOf = ({ source }: ReceivedMail): string[] =>
  source
    .toString('latin1')
    .split('\r\n\r\n', 1)[0]!
    .split('\r\n')
    .filter(line => !/^[ \t]/.test(line))
    .map(line => line.split(':', 1)[0]!.toLowerCase())
    .sort()
const FIELDS = ['auto-submitted', 'content-type', 'date', 'from', 'message-id']
const HEAD = [...FIELDS, 'mime-version', 'subject', 'to'].sort()

/** Without what keeps a name from being a link. */
const visible = (text: string | undefined) => text?.replaceAll('\u2060', '')

describe('what is mailed', () => {
  test('its numbers make sense, and a mail may never be repeated', t => {
    const destination = opened(t, { host: '127.0.0.1', port: 9 })
    assertSensible(destination)
    const { name, repeatable, concurrency } = destination
    assert.deepEqual({ name, repeatable, concurrency }, { name: 'mail', repeatable: 0, concurrency: 3 })
  })

  test('a short text to the address as it was typed, with the event as the id of the mail', async t => {
    const server = await startMailServer(t)
    const event = joined(7, { name: 'Zoë "Z" 李', email: 'Zoe+1@Example.COM' })
    const before = Math.floor(Date.now() / 1000) * 1000
    assert.deepEqual(await opened(t, server).deliver(event, running), { is: 'delivered' })
    const [one] = server.mails as [ReceivedMail]
    assert.deepEqual([one.from, one.to], ['hello@acme.example', ['Zoe+1@Example.COM']])
    assert.equal(one.greeted, 'waitlist.acme.example')
    assert.deepEqual(fieldsOf(one), HEAD)
    const { from, to, subject, messageId, date, headers, text, html } = await parsed(one)
    assert.deepEqual([from?.name, from?.address], ['Acme', 'hello@acme.example'])
    assert.deepEqual(
      [to?.[0]?.name, to?.[0]?.address?.toLowerCase(), to?.length],
      ['Zoë "Z" 李', 'zoe+1@example.com', 1],
    )
    assert.equal(subject, 'Acme: you are on the list')
    assert.equal(messageId, `<${event.id}@acme.example>`)
    assert.ok(new Date(date!).getTime() >= before && new Date(date!).getTime() <= Date.now())
    assert.equal(headers.find(({ key }) => key === 'auto-submitted')?.value, 'auto-generated')
    assert.match(text!, /^Hello Zoë "Z" 李,\n\nThank you for signing up at Acme\. You are on the waitlist, /)
    for (const paragraph of text!.trim().split('\n\n'))
      assert.ok(html!.includes(`>${escapeHtml(paragraph)}</p>`), paragraph)
    assert.doesNotMatch(html!, /https?:|src=|url\(/, 'nothing is loaded, and nobody is followed')
  })

  test('the files of the owner, filled in once, and escapeHtml in HTML', async t => {
    const folder = temporaryFolder(t)
    const textFile = join(folder, 'welcome.txt')
    const htmlFile = join(folder, 'welcome.html')
    writeFileSync(textFile, '\uFEFFHi {name} <{email}>, ß {service}. {name}!\n.\n..\nFrom me')
    writeFileSync(htmlFile, '<style>p { color: red }</style><p title="{name}">{name}, {email}</p>')
    const server = await startMailServer(t)
    const name = `{email} <b onclick='x'>"&amp;{name}</b>`
    const subject = '{name} {email} {service}'
    const destination = opened(t, server, { textFile, htmlFile, subject, service: '{name} & Co' })
    await destination.deliver(joined(0, { name, email: 'a&b@example.com' }), running)
    await opened(t, server, { textFile }).deliver(joined(), running)
    assert.equal((await parsed(server.mails[1]!)).html, undefined, 'no HTML but that of the owner')
    const told = await parsed(server.mails[0]!)
    assert.equal(visible(told.text)?.trimEnd(), `Hi ${name} <a&b@example.com>, ß {name} & Co. ${name}!\n.\n..\nFrom me`)
    const written = '{email} &lt;b onclick=&#39;x&#39;&gt;&quot;&amp;amp;{name}&lt;/b&gt;'
    assert.equal(
      visible(told.html)?.trimEnd(),
      `<style>p { color: red }</style><p title="${written}">${written}, a&amp;b@example.com</p>`,
    )
    assert.equal(visible(told.subject), `${name} a&b@example.com {name} & Co`)
  })

  test('with links, every mail says how its reader leaves, in its head too, and one how they confirm', async t => {
    const server = await startMailServer(t)
    const destination = opened(t, server, {}, () => links)
    const { contact } = joined()
    const confirmation = { at: new Date(), times: 2 }
    const events = [joined(), invited(), eventOf({ ...contact, confirmation }, 'confirmation')]
    for (const event of events) assert.deepEqual(await destination.deliver(event, running), { is: 'delivered' })
    const leave = links.unsubscribe(contact)
    const confirm = links.confirm(contact)
    for (const [i, { kind }] of events.entries()) {
      const { headers, text, html } = await parsed(server.mails[i]!)
      const fields = Object.fromEntries(headers.map(({ key, value }) => [key, value]))
      // RFC 8058 §3.1: nothing but https.
      assert.equal(fields['list-unsubscribe'], `<${leave}>`, kind)
      assert.equal(fields['list-unsubscribe-post'], 'List-Unsubscribe=One-Click')
      const expected = kind === 'confirmation' ? [confirm, leave] : [leave]
      assert.deepEqual(text!.match(/https:\S+/g), expected)
      assert.deepEqual([...new Set(html!.match(/https:[^"<\s]+/g))], expected)
    }
    assert.deepEqual(fieldsOf(server.mails[0]!), [...HEAD, 'list-unsubscribe', 'list-unsubscribe-post'].sort())
  })

  test('a name is not a link', async t => {
    const server = await startMailServer(t)
    const htmlFile = join(temporaryFolder(t), 'mail.html')
    writeFileSync(htmlFile, '<p>Hello {name}, welcome</p>')
    const destination = opened(t, server, { subject: '{name}: welcome', htmlFile })
    const links = ['https://evil.example/x', 'a@b.example', 'J. R.']
    for (const [i, name] of links.entries()) {
      await destination.deliver(joined(i, { name: `win at ${name} now` }), running)
      const { to, subject, text, html } = await parsed(server.mails[i]!)
      for (const shown of [to![0]!.name, subject!, text!, html!]) {
        assert.ok(visible(shown)!.includes(`win at ${name} now`), shown)
        assert.doesNotMatch(shown, /:\/\/|l\.e|b\.e|a@b/)
      }
    }
  })

  test('an encoded word is shown as it was typed', async t => {
    const server = await startMailServer(t)
    const subject = '=?utf-8?q?no?= {name} ={name}'
    for (const name of [
      '=?utf-8?q?Claim=3A=20https=3A=2F=2Fevil=2Ecom?=',
      'Claim =?UTF-8?B?aHR0cHM6Ly9ldmlsLmNvbQ==?= now',
      '=?utf-8?Q?a=0D=0ABcc:=20x@evil.example?=',
      '=?utf-8*en?q?evil?=',
      '=?utf-8?q?e v i l?=',
      'utf-8?q?evil?=',
    ]) {
      const from = { name, address: 'hello@acme.example' }
      await opened(t, server, { subject, from }).deliver(joined(0, { name }), running)
      const { from: sender, to, subject: told } = await parsed(server.mails.at(-1)!)
      for (const [shown, typed] of [
        [sender?.name, name],
        [to?.[0]?.name, name],
        [told, `=?utf-8?q?no?= ${name} =${name}`],
      ] as const) {
        assert.equal(visible(shown), typed)
        // Some mail programs decode what they have decoded.
        assert.equal((await PostalMime.parse(Buffer.from(`Subject: ${shown}\r\n\r\n`))).subject, shown)
      }
    }
  })

  test('a name turns the direction of no text', async t => {
    const server = await startMailServer(t)
    const htmlFile = join(temporaryFolder(t), 'mail.html')
    writeFileSync(htmlFile, '<p>Hello {name}, welcome</p>')
    const destination = opened(t, server, { subject: '{name}: welcome', htmlFile })
    await destination.deliver(joined(0, { name: 'A\u202Ed\u2066a\u200F \u061CŠ' }), running)
    const { to, subject, text, html } = await parsed(server.mails[0]!)
    assert.deepEqual([to![0]!.name, subject], ['Ada Š', 'Ada Š: welcome'])
    assert.match(text!, /^Hello Ada Š,$/m)
    assert.match(html!, /^<p>Hello Ada Š, welcome<\/p>/)
  })

  test('no name and no subject adds a field or a recipient, and every name arrives', async t => {
    const server = await startMailServer(t)
    const destination = opened(t, server, { subject: '{name}: welcome' })
    const nasty = fc.constantFrom(
      '\r\nBcc: x@evil.example',
      '\n\n<b>',
      '\r\n ',
      '\r',
      '\t',
      '=?utf-8?q?=0aTo:_x?=',
      ', <x@y.z>',
    )
    const part = fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 30 }), fc.string({ maxLength: 100 }))
    const names = fc.array(part, { minLength: 1, maxLength: 3 }).map(parts => parts.join(''))
    await fc.assert(
      fc.asyncProperty(names, async name => {
        assert.deepEqual(await destination.deliver(joined(2, { name }), running), { is: 'delivered' })
        const one = server.mails.at(-1)!
        assert.deepEqual(one.to, ['Ada.Lovelace.2@Example.com'])
        assert.deepEqual(fieldsOf(one), HEAD)
        for (const line of one.source.toString('latin1').split('\r\n')) assert.ok(line.length <= 998, 'RFC 5322 §2.1.1')
        assert.doesNotMatch(one.source.toString('latin1'), /[^\r]\n|\r[^\n]/)
        const { to, subject, text } = await parsed(one)
        assert.deepEqual(
          to?.map(({ address }) => address?.toLowerCase()),
          ['ada.lovelace.2@example.com'],
        )
        assert.equal(subject?.endsWith(': welcome'), true)
        assert.ok(text !== undefined)
      }),
      { numRuns: isSlow ? 500 : 20 },
    )
  })
})

type Is = DeliveryResult['is']

/** What is not a reply. */
const silences: Readonly<Record<string, Deed>> = {
  'a reset': reset,
  'an end': end,
  'bytes that are no SMTP': garbage,
  'half a line': halfALine,
  'a line of 1 MB': longLine,
}
/** What takes the whole timeout. */
const hanging: Readonly<Record<string, Deed>> = { 'no answer': hang, 'a reply without end': withoutEnd }

/** Says it with all that it was told. */
const chatty = (code: string) =>
  say(
    `${code} Ada King Lovelace <Ada.Lovelace.0@Example.com> ada.lovelace.0 ${login.user} ${login.password} ${secrets.join(' ')}`,
  )

const beforeTheEnd = moments.filter(moment => !['STARTTLS', 'the end', 'RSET', 'QUIT'].includes(moment))

/** What each no is taken for; at RCPT TO and DATA, where no command is given. */
const nos: readonly (readonly [reply: string, Judgement | Is, command?: string])[] = [
  ...['550', '550 5.1.1', '551 5.1.6', '552 5.2.2', '553 5.1.3', '554', '554 5.6.0', '550 5.4.1', '550 5.0.0'].map(
    code => [`${code} No such Ada`, 'refused'] as const,
  ),
  ...['530 5.7.0', '535', '550 5.7.1', '550 5.7.26', '553 5.1.8', '552 5.3.4', '503 5.5.1', '555'].map(
    code => [code, 'misconfigured'] as const,
  ),
  ['550 relay not permitted', 'misconfigured'],
  ['550 Authentication required', 'misconfigured'],
  ['554 Message rejected: Email address is not verified.', 'misconfigured'],
  ['554 Access denied: user mailer is not authorized to send', 'misconfigured'],
  ['550 5.1.0 sender rejected', 'misconfigured'],
  ['550 5.4.5 Daily user sending limit exceeded.', 'misconfigured'],
  ['554 5.2.252 SendAsDenied; waitlist@example.com not allowed to send as hello@example.com', 'misconfigured'],
  ...['450 4.1.2', '451', '450 4.0.0'].map(code => [code, { is: 'unreached', alone: true }, 'RCPT TO'] as const),
  ...['421', '452 4.3.1', '450 4.7.1', '450 4.2.1 Sending too fast', '450 4.1.8'].map(
    code => [code, { is: 'unreached' }, 'RCPT TO'] as const,
  ),
  ['450 4.1.2', { is: 'unreached' }, 'MAIL FROM'],
  ['450 4.1.2', { is: 'unreached' }, 'DATA'],
  // Google's relay, of a name that it does not like.
  ['421 4.7.0', 'misconfigured', 'EHLO'],
  ['421 4.7.0', 'unreached', 'CONN'],
  ...['500', '535 5.7.8', '550 5.1.1'].map(code => [code, 'misconfigured', 'AUTH'] as const),
]
for (const [reply, meant, command] of nos) {
  const judgement = typeof meant === 'string' ? { is: meant } : meant
  test(`"${reply}" to ${command ?? 'a recipient or a mail'} is ${JSON.stringify(judgement)}`, () => {
    const [, code, status, text = ''] = /^(\d{3})(?: (\d\.\d+\.\d+))? ?(.*)$/.exec(reply)!
    for (const each of command === undefined ? ['RCPT TO', 'DATA'] : [command]) {
      assert.deepEqual(judgeRefusal({ command: each, code: Number(code), status, text }), judgement)
    }
  })
}

// The server waits for a moment before it greets, so that many tests take long one after the other.
describe('what becomes of a mail', { concurrency: 8 }, () => {
  async function outcomeOf(
    t: TestContext,
    at: Moment,
    deed: Deed,
    options: MailServerOptions = {},
  ): Promise<{ readonly outcome: DeliveryResult; readonly server: MailServer }> {
    const server = await startMailServer(t, { login, deed: moment => (moment === at ? deed : null), ...options })
    const destination = opened(t, server, { server: { login } })
    const outcome = await destination.deliver(joined(), running)
    assertDiscreet(outcome, secrets)
    assert.ok(!('why' in outcome) || !outcome.why.includes(login.user), JSON.stringify(outcome))
    return { outcome, server }
  }

  const cases: [at: Moment, what: string, Deed, Is][] = []
  for (const at of beforeTheEnd) {
    cases.push([at, 'a reset', reset, 'unreached'])
    cases.push([at, '451 4.7.1', chatty('451 4.7.1'), 'unreached'])
  }
  for (const [what, deed] of Object.entries(silences)) {
    cases.push(['DATA', what, deed, 'unreached'], ['the end', what, deed, 'unclear'])
  }
  // A server that knows no EHLO is greeted the old way, and answers that as well.
  for (const at of ['greeting', 'EHLO', 'AUTH', 'MAIL'] as const) {
    cases.push([at, '550 5.1.1', chatty('550 5.1.1'), 'misconfigured'])
  }
  for (const at of ['RCPT', 'the end'] as const) {
    cases.push([at, '550 5.1.1', say('550 5.1.1 No such Ada'), 'refused'])
    cases.push([at, '550 5.7.1', chatty('550 5.7.1'), 'misconfigured'])
    const lines = '550-5.4.5 Daily user sending limit exceeded.\r\n550 5.4.5 See the help'
    cases.push([at, 'lines about us', say(lines), 'misconfigured'])
  }
  cases.push(['the end', '450 4.2.1', chatty('450 4.2.1'), 'unreached'])
  cases.push(['the end', '354 once more', say('354 go on'), 'unclear'])
  cases.push(['the end', 'half a code', say('2'), 'unclear'])
  cases.push(['QUIT', 'a reset', reset, 'delivered'])

  for (const [at, what, deed, is] of cases) {
    test(`${at}: ${what} is ${is}`, async t => {
      const { outcome, server } = await outcomeOf(t, at, deed)
      assert.equal(outcome.is, is, JSON.stringify(outcome))
      assert.equal(server.mails.length, at === 'the end' || at === 'QUIT' ? 1 : 0)
    })
    if (at !== 'RCPT') continue
    test(`${at}, asked for by itself: ${what} is ${is}`, async t => {
      const { outcome } = await outcomeOf(t, at, deed, { hidePIPELINING: true })
      assert.equal(outcome.is, is, JSON.stringify(outcome))
    })
  }

  test('a recipient that the server does not want yet keeps no other mail waiting', async t => {
    const { outcome } = await outcomeOf(t, 'RCPT', say('450 4.1.2 later'))
    assert.ok(outcome.is === 'unreached' && outcome.alone === true, JSON.stringify(outcome))
  })

  test('the reason says at which command, and with which codes', async t => {
    const { outcome } = await outcomeOf(t, 'RCPT', say('550-5.1.1 <Ada.Lovelace.0@Example.com>\r\n550 5.1.1 unknown'))
    const why = 'send the mail: RCPT TO was answered with 550 5.1.1 (<…> 550 5.1.1 unknown)'
    assert.deepEqual(outcome, { is: 'refused', why })
  })

  test('an address decides nothing by its words', async t => {
    for (const email of ['sending@nowhere.example', 'relay@sender.example', 'not.authorized@verified.example']) {
      const reply = say(`550 5.1.0 <${email}>: is unknown`)
      const server = await startMailServer(t, { deed: moment => (moment === 'RCPT' ? reply : null) })
      const outcome = await opened(t, server).deliver(joined(0, { email }), running)
      assert.equal(outcome.is, 'refused', JSON.stringify(outcome))
    }
  })

  test('a mail that is too large for the server is misconfigured', async t => {
    const server = await startMailServer(t, { size: 100 })
    const outcome = await opened(t, server).deliver(joined(), running)
    assert.equal(outcome.is, 'misconfigured', JSON.stringify(outcome))
    assert.equal(server.mails.length, 0)
  })

  test('when the process stops: unclear after the end of the mail, else unreached, and what waits is not sent', async t => {
    for (const [at, is] of [
      ['MAIL', 'unreached'],
      ['the end', 'unclear'],
    ] as const) {
      const server = await startMailServer(t, { deed: moment => (moment === at ? hang : null) })
      const destination = opened(t, server)
      const stop = new AbortController()
      const outcomes = Array.from({ length: 7 }, (_, i) => destination.deliver(joined(i), stop.signal))
      await server.reached(at, 1)
      stop.abort()
      const all = await Promise.all(outcomes)
      assert.equal(all[0]!.is, is, JSON.stringify(all))
      for (const outcome of all) {
        assert.ok(outcome.is === is || outcome.is === 'unreached', JSON.stringify(outcome))
        assertDiscreet(outcome, secrets)
      }
      assert.ok(all.some(outcome => 'notSent' in outcome && outcome.notSent))
      assert.ok(server.connections.all <= 3)
    }
  })

  test('nothing is sent when it may no longer begin', async t => {
    const server = await startMailServer(t)
    const outcome = await opened(t, server).deliver(joined(), running, () => false)
    assert.ok(outcome.is === 'unreached' && outcome.notSent === true, JSON.stringify(outcome))
    assert.equal(server.connections.all, 0)
  })

  test('nothing is sent when the process stops before, and where nobody listens', async t => {
    const server = await startMailServer(t)
    assert.equal((await opened(t, server).deliver(joined(), AbortSignal.abort())).is, 'unreached')
    assert.equal(server.connections.all, 0)
    const outcome = await opened(t, { host: '127.0.0.1', port: await freePort() }).deliver(joined(), running)
    assert.equal(outcome.is, 'unreached')
    assert.ok('why' in outcome && /^send the mail: .*ECONNREFUSED/.test(outcome.why), JSON.stringify(outcome))
  })

  // The timeouts are the real ones.
  describe('that is never answered', { skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1', concurrency: 20 }, () => {
    for (const at of [...beforeTheEnd, 'the end'] as const) {
      for (const [what, deed] of Object.entries(hanging)) {
        const is = at === 'the end' ? 'unclear' : 'unreached'
        test(`${at}: ${what} is ${is}, in time`, async t => {
          const begun = performance.now()
          const { outcome } = await outcomeOf(t, at, deed)
          assert.deepEqual(outcome, { is, why: 'send the mail: no answer in time' })
          assert.ok(performance.now() - begun < 25_000)
        })
      }
    }
  })
})

describe('sessions', () => {
  test('one is used again for the next mail, and ended politely', async t => {
    const server = await startMailServer(t, { login })
    const destination = opened(t, server, { server: { login } })
    for (let i = 0; i < 12; i++) assert.equal((await destination.deliver(joined(i), running)).is, 'delivered')
    assert.deepEqual([server.connections.all, server.mails.length], [1, 12])
    assert.deepEqual(new Set(server.mails.map(({ user }) => user)), new Set([login.user]))
    await destination.close()
    await server.reached('QUIT', 1)
    await until(() => server.connections.open === 0)
  })

  test('as many as may be under way at once, and no more', async t => {
    const server = await startMailServer(t)
    const destination = opened(t, server)
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, i) => destination.deliver(joined(i), running)))
    assert.deepEqual(new Set(outcomes.map(({ is }) => is)), new Set(['delivered']))
    assert.equal(new Set(server.mails.map(({ to }) => to[0])).size, 20)
    assert.ok(server.connections.all <= 3)
  })

  test('one that the server ended is not used again', async t => {
    const afterTheFirst: Deed = (client, reply) => void client.end(reply)
    const server = await startMailServer(t, {
      deed: (moment, count) => (moment === 'the end' && count === 1 ? afterTheFirst : null),
    })
    const destination = opened(t, server)
    assert.equal((await destination.deliver(joined(), running)).is, 'delivered')
    await until(() => server.connections.open === 0)
    assert.equal((await destination.deliver(joined(1), running)).is, 'delivered')
    assert.equal(server.connections.all, 2)
  })

  for (const hidePIPELINING of [false, true]) {
    test(`after refusals one is used again, ${hidePIPELINING ? 'step by step' : 'with commands sent ahead'}`, async t => {
      const no = say('554 5.6.0 not this mail')
      const server = await startMailServer(t, {
        login,
        hidePIPELINING,
        onRcptTo: ({ address }, _, callback) =>
          callback(address.includes('.1@') ? Object.assign(new Error('unknown'), { responseCode: 550 }) : null),
        deed: (moment, count) => (moment === 'the end' && count === 2 ? no : null),
      })
      const destination = opened(t, server, { server: { login } })
      const outcomes = []
      for (const i of [0, 1, 1, 2, 1, 3]) outcomes.push((await destination.deliver(joined(i), running)).is)
      assert.deepEqual(outcomes, ['delivered', 'refused', 'refused', 'refused', 'refused', 'delivered'])
      assert.deepEqual([server.connections.all, server.count('AUTH'), server.count('RSET')], [1, 1, 4])
      await destination.close()
      await server.reached('QUIT', 1)
    })
  }

  test('one that broke, or that the server does not reset, is not used again', async t => {
    const [first, third] = [say('550 5.1.1 unknown'), say('421 4.3.2 closing')]
    const server = await startMailServer(t, {
      deed(moment, count) {
        if (moment === 'RSET') return say('502 5.5.1 what?')
        return moment === 'RCPT' ? ([first, null, third, garbage][count - 1] ?? null) : null
      },
    })
    const destination = opened(t, server)
    for (const [i, is] of (['refused', 'delivered', 'unreached', 'unreached', 'delivered'] as const).entries()) {
      assert.equal((await destination.deliver(joined(i), running)).is, is)
    }
    assert.deepEqual([server.connections.all, server.mails.length], [4, 2])
  })

  test('one that nobody uses is ended within ten seconds', {
    skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1',
  }, async t => {
    const server = await startMailServer(t)
    await opened(t, server).deliver(joined(), running)
    const begun = performance.now()
    await server.reached('QUIT', 1)
    await until(() => server.connections.open === 0)
    assert.ok(performance.now() - begun < 10_000)
  })

  test('closing waits for no server that does not answer QUIT', async t => {
    const server = await startMailServer(t, { deed: moment => (moment === 'QUIT' ? hang : null) })
    const destination = opened(t, server)
    await destination.deliver(joined(), running)
    await destination.close()
    await until(() => server.connections.open === 0)
  })

  test('the rate holds: what would have to wait for too long is not sent', async t => {
    const server = await startMailServer(t)
    const destination = opened(t, server, { rate: 1 })
    const outcomes = [await destination.deliver(joined(), running), await destination.deliver(joined(1), running)]
    assert.deepEqual(
      outcomes.map(({ is }) => is),
      ['delivered', 'unreached'],
    )
    assert.equal('notSent' in outcomes[1]! && outcomes[1].notSent, true)
    assert.equal(server.mails.length, 1)
  })
})

describe('encryption', () => {
  const certificate = selfSigned({ kind: 'ec', name: 'mail' })
  /** Trusts the certificate until the test ends. */
  function trust(t: TestContext): void {
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, certificate.cert])
    t.after(() => setDefaultCACertificates(before))
  }
  const starttls = { ...certificate, disabledCommands: ['AUTH'] }
  /** An address of this machine that is not known for one, as another machine's would be. */
  const elsewhere = '0.0.0.0'

  test('smtps is TLS from the start, with a certificate that must be trusted', async t => {
    const server = await startMailServer(t, { ...certificate, secure: true, login })
    const more = { server: { host: 'localhost', secure: true, login } }
    const distrusted = await opened(t, server, more).deliver(joined(), running)
    assert.equal(distrusted.is, 'unreached', JSON.stringify(distrusted))
    assert.ok('why' in distrusted && /self-signed/.test(distrusted.why), JSON.stringify(distrusted))
    trust(t)
    assert.deepEqual(await opened(t, server, more).deliver(joined(), running), { is: 'delivered' })
    assert.deepEqual(
      server.mails.map(({ secure, user }) => [secure, user]),
      [[true, login.user]],
    )
  })

  test('smtp to another machine is encrypted before the login, with a certificate that must be trusted', async t => {
    const server = await startMailServer(t, { ...certificate, disabledCommands: [], allowInsecureAuth: false, login })
    const more = { server: { host: elsewhere, login } }
    assert.equal((await opened(t, server, more).deliver(joined(), running)).is, 'unreached')
    trust(t)
    assert.deepEqual(await opened(t, server, more).deliver(joined(), running), { is: 'delivered' })
    assert.deepEqual(
      server.mails.map(({ secure, user }) => [secure, user]),
      [[true, login.user]],
    )
    assert.equal(server.count('AUTH'), 0, 'it was not seen in the clear')
  })

  test('where another machine offers no STARTTLS, nobody logs in and nothing is sent', async t => {
    const server = await startMailServer(t, { login })
    const outcome = await opened(t, server, { server: { host: elsewhere, login } }).deliver(joined(), running)
    assert.equal(outcome.is, 'misconfigured', JSON.stringify(outcome))
    assert.ok('why' in outcome && outcome.why.startsWith('send the mail: STARTTLS was answered with 5'))
    assert.deepEqual([server.count('STARTTLS'), server.count('AUTH'), server.mails.length], [1, 0, 0])
  })

  for (const [what, deed, is] of [
    ['454', say('454 4.7.0 TLS not available'), 'unreached'],
    ['502', say('502 5.5.1 what?'), 'misconfigured'],
    ['a reset', reset, 'unreached'],
    ['an end instead of TLS', client => void client.end('220 go ahead\r\n'), 'unreached'],
  ] as [string, Deed, Is][]) {
    test(`STARTTLS of another machine: ${what} is ${is}`, async t => {
      trust(t)
      const server = await startMailServer(t, { ...starttls, deed: moment => (moment === 'STARTTLS' ? deed : null) })
      const outcome = await opened(t, server, { server: { host: elsewhere } }).deliver(joined(), running)
      assert.equal(outcome.is, is, JSON.stringify(outcome))
      assert.equal(server.mails.length, 0)
    })
  }

  test('this machine is encrypted to where it offers it, whatever its certificate', async t => {
    const server = await startMailServer(t, starttls)
    assert.deepEqual(await opened(t, server).deliver(joined(), running), { is: 'delivered' })
    assert.equal(server.mails[0]!.secure, true)
  })
})

describe('trying the mail server', () => {
  test('it is greeted, logged in to and left, without a mail', async t => {
    const server = await startMailServer(t, { login })
    assert.equal(await opened(t, server, { server: { login } }).check(running), null)
    assert.equal(server.mails.length, 0)
    await until(() => server.connections.open === 0)
  })

  test('a name that the server does not like is misconfigured, and said', async t => {
    const reply = say('421 4.7.0 Try again later, closing connection. (EHLO)')
    const server = await startMailServer(t, { deed: moment => (moment === 'EHLO' ? reply : null) })
    assert.deepEqual(await opened(t, server).check(running), {
      is: 'misconfigured',
      why:
        'try the mail server: EHLO was answered with 421 4.7.0 (Try again later, closing connection. (EHLO)); we call ' +
        'ourselves waitlist.acme.example: set BASE_URL to the public address',
    })
  })

  test('a wrong password is misconfigured, and is not repeated', async t => {
    const server = await startMailServer(t, { login })
    const wrong = { user: login.user, password: 'wrong horse' }
    const failure = await opened(t, server, { server: { login: wrong } }).check(running)
    assert.equal(failure?.is, 'misconfigured')
    assert.match(failure!.why, /^try the mail server: AUTH was answered with 535/)
    assertDiscreet(failure!, ['wrong horse'])
    await server.reached('QUIT', 1)
  })

  test('it ends when the process stops', async t => {
    const server = await startMailServer(t, { deed: moment => (moment === 'EHLO' ? hang : null) })
    const stop = new AbortController()
    const failure = opened(t, server).check(stop.signal)
    await server.reached('EHLO', 1)
    stop.abort()
    assert.deepEqual(await failure, { is: 'unreached', why: 'try the mail server: cut off by our own stop' })
  })

  test('an invitation is sent with the letter of its own; code and link are filled in where they stand', async t => {
    const folder = temporaryFolder(t)
    const htmlFile = join(folder, 'invitation.html')
    writeFileSync(htmlFile, '<a href="{link}">{code}, {name}</a>')
    const inviteLink = 'https://app.acme.example/in?a=1&code={code}'
    const server = await startMailServer(t)
    const event = invited(0, { name: '{code} {link}' })
    const own = { inviteLink, invitation: { subject: '{name}: {code}', htmlFile } }
    for (const more of [own, { inviteLink }, {}]) {
      assert.equal((await opened(t, server, more).deliver(event, running)).is, 'delivered')
    }
    const [written, linked, plain] = await Promise.all(server.mails.map(parsed))
    const link = `https://app.acme.example/in?a=1&code=${event.code}`
    assert.equal(visible(written!.subject), `{code} {link}: ${event.code}`)
    assert.equal(
      visible(written!.html)?.trimEnd(),
      `<a href="${link.replace('&', '&amp;')}">${event.code}, {code} {link}</a>`,
    )
    assert.equal(written!.messageId, `<${event.id}@acme.example>`)
    assert.ok(linked!.text?.includes(`\n${link}\n`))
    assert.ok(plain!.text?.includes(`your code is ${event.code}.`))
    for (const { html, text } of [linked!, plain!])
      assert.doesNotMatch(`${html}${text}`, /\{(?:code|service|name)\}[^ ]/)
  })

  test('{link} stops the start while INVITE_LINK is not set, and {code} in a welcome mail does', async t => {
    const textFile = join(temporaryFolder(t), 'text')
    const server = await startMailServer(t)
    writeFileSync(textFile, 'Go to {link}')
    const refused = (more: More) => {
      try {
        opened(t, server, more)
      } catch (error) {
        return (error as Error).message.replace(textFile, '…')
      }
      return undefined
    }
    assert.equal(refused({ invitation: { textFile } }), 'INVITE_TEXT_FILE: … has {link}, but INVITE_LINK is not set')
    assert.equal(refused({ invitation: { textFile }, inviteLink: 'https://app.example/{code}' }), undefined)
    writeFileSync(textFile, 'Your code is {code}')
    assert.equal(
      refused({ textFile }),
      'MAIL_TEXT_FILE: … has {code}, but the placeholders are {name}, {email}, {service}',
    )
  })

  test('a mail to the operator has a sample name, and the answer is told', async t => {
    const server = await startMailServer(t, {
      deed: moment => (moment === 'the end' ? say('250 2.0.0 queued as 4711') : null),
    })
    const result = await opened(t, server).try('joined', 'you@example.com', running)
    assert.deepEqual(result, { is: 'delivered', answer: '250 2.0.0 queued as 4711' })
    assert.deepEqual(server.mails[0]!.to, ['you@example.com'])
    const { messageId, to } = await parsed(server.mails[0]!)
    assert.match(messageId!, /^<check_[0-9a-f-]{36}@acme\.example>$/)
    assert.equal(to?.[0]?.name, 'Ada Lovelace')
  })
})

describe('through a mail server of Debian', { skip: eximProgram === undefined && noExim }, () => {
  let exim: Exim
  const ends: (() => unknown)[] = []
  before(async () => {
    exim = await startExim({ after: (end: () => unknown) => void ends.push(end) } as Pick<TestContext, 'after'>)
  })
  after(async () => {
    for (const end of ends) await end()
  })
  const through = (t: TestContext, more: More = {}) =>
    opened(t, { host: '127.0.0.1', port: exim.port }, { ...more, server: { login: eximLogin, ...more.server } })

  test('mails are encrypted, logged in for, and delivered once each', async t => {
    const destination = through(t, { subject: 'Hi {name}' })
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
      const event = events.find(({ id }) => messageId === `<${id}@acme.example>`)
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
      { login: { ...eximLogin, password: 'wrong horse' } },
      'misconfigured',
      /AUTH was answered with 535/,
    ],
  ] as const) {
    test(`${what} is ${is}`, async t => {
      const outcome = await through(t, { server: more }).deliver(joined(0, { email }), running)
      assert.equal(outcome.is, is, JSON.stringify(outcome))
      assert.match('why' in outcome ? outcome.why : '', why)
      assertDiscreet(outcome, [eximLogin.password, 'wrong horse'])
    })
  }

  test('a mail that is refused after its end is refused, and not delivered', async t => {
    const email = 'ada.lovelace@example.com'
    const outcome = await through(t, { subject: 'refused' }).deliver(joined(0, { email }), running)
    assert.equal(outcome.is, 'refused', JSON.stringify(outcome))
    assert.match(
      'why' in outcome ? outcome.why : '',
      /^send the mail: DATA was answered with 550 \(This mail for … is refused\)$/,
    )
    assert.ok(!exim.mails().some(source => source.includes(email)))
  })
})

test('all mails of ours fit a phone, say what their text says and are legible, in light and dark', {
  skip: !isSlow && 'it takes seconds of a processor; it runs in .ci/run',
}, async t => {
  const { openPage, startBrowser } = await import('../harness/browser.ts')
  const { default: axe } = await import('axe-core')
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  const names = ['Ada Lovelace', '<img src=http://evil.example/x>', 'W'.repeat(100)]
  const mails = [
    ...names.map(name => ({ kind: 'joined', name, code: undefined }) as const),
    ...names.map(name => ({ kind: 'invited', name, code: CODE }) as const),
    ...names.map(name => ({ kind: 'confirmation', name, code: undefined }) as const),
  ]
  const letter = { subject: 'Hi', textFile: null, htmlFile: null }
  const letters = { joined: letter, invited: letter, confirmation: letter }
  for (const [i, { kind, name, code }] of mails.entries()) {
    const from = { name: 'Acme', address: 'hello@acme.example' }
    const inviteLink = i % 2 === 0 ? 'https://app.acme.example/?a=1&code={code}' : null
    const linked = kind === 'confirmation' || i % 2 === 0
    const write = mailWriter({ from, letters, inviteLink, service: 'Acme & Sons' }, linked ? () => links : null)
    const addressee = joined().contact
    const { html, text } = await PostalMime.parse(
      await write({ kind, id: 'evt_1', addressee, name, email: 'ada@example.com', code }),
    )
    const shown = text!
      .trimEnd()
      .replace(/^Unsubscribe: .*/m, 'Unsubscribe')
      .replace(/^.*\/confirm\?.*/m, 'Confirm this address')
    for (const colorScheme of ['light', 'dark'] as const) {
      const viewport = { width: 375, height: 667 }
      const { page, complaints, origins } = await openPage(t, browser, 'about:blank', { colorScheme, viewport })
      await page.setContent(html!)
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 375)
      assert.equal(await page.evaluate('document.body.innerText'), `Acme & Sons\n\n${shown}`)
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<AxeResults>(`axe.run({ resultTypes: ['violations'] })`)
      const found = violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])
      assert.deepEqual(found, [], `${name}, ${colorScheme}`)
      assert.deepEqual([complaints, [...origins].filter(origin => origin !== 'null')], [[], []])
    }
  }
})
