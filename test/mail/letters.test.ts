import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { type EventKind, eventOf, type WaitlistEvent } from '../../src/signup/contact.ts'
import { invited, joined } from '../delivery/events.ts'
import { isSlow } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { type ReceivedMail, startMailServer } from '../harness/mail-server.ts'
import { links, mailing, parsed, visible } from './mailing.ts'

const running = new AbortController().signal
const inviteLink = 'https://app.acme.example/in?a=1&code={code}'

const confirmation = (name = 'Ada King Lovelace'): WaitlistEvent =>
  eventOf(
    { ...joined().contact, name, state: 'unconfirmed', confirmation: { at: new Date(), times: 2 } },
    'confirmation',
  )

/** The names of the header fields, in lower case. */
const fieldsOf = ({ source }: ReceivedMail): string[] =>
  source
    .toString('latin1')
    .split('\r\n\r\n', 1)[0]!
    .split('\r\n')
    .filter(line => !/^[ \t]/.test(line))
    .map(line => line.split(':', 1)[0]!.toLowerCase())
    .filter(name => name !== 'content-transfer-encoding')
    .sort()
const FIELDS = [
  ...['auto-submitted', 'content-type', 'date', 'from', 'list-unsubscribe', 'list-unsubscribe-post', 'message-id'],
  ...['mime-version', 'subject', 'to'],
]

test('three letters, each to the address as it was typed, under an id of its own, with a link to unsubscribe', async t => {
  const server = await startMailServer(t)
  const destination = mailing(t, server, { inviteLink })
  const events = [confirmation(), joined(), invited()]
  const expected: Readonly<Record<EventKind, readonly [subject: string, text: RegExp]>> = {
    confirmation: [
      'Confirm your address for Acme',
      /^Confirm your email address\n\nSomeone, hopefully you, signed up for Acme /,
    ],
    joined: [
      "You're on the waitlist for Acme",
      /^Hi Ada King Lovelace,\n\nYou're on the waitlist for Acme\.\n\nThanks/,
    ],
    invited: [
      "It's your turn: you're invited to Acme",
      /^Hi Ada King Lovelace,\n\nIt's your turn\. You're invited to Acme\.\n/,
    ],
  }
  for (const event of events) assert.deepEqual(await destination.deliver(event, running), { is: 'delivered' })
  for (const [i, { kind, id, at, contact, code }] of events.entries()) {
    const mail = server.mails[i]!
    assert.deepEqual(
      [mail.from, mail.to, mail.greeted],
      ['hello@acme.example', [contact.email.replace('Example', 'example')], 'waitlist.acme.example'],
    )
    assert.deepEqual(fieldsOf(mail), FIELDS)
    const { from, to, subject, messageId, headers, text, html } = await parsed(mail)
    const fields = Object.fromEntries(headers.map(({ key, value }) => [key, value]))
    assert.deepEqual([from?.name, from?.address, to?.length], ['Acme', 'hello@acme.example', 1])
    assert.equal(to?.[0]?.name ?? '', kind === 'confirmation' ? '' : contact.name)
    assert.equal(messageId, `<${id}_${at.getTime()}@acme.example>`)
    assert.equal(subject, expected[kind][0])
    assert.match(text!, expected[kind][1])
    const leave = links.unsubscribe(contact)
    const action = {
      confirmation: [links.confirm(contact)],
      joined: [],
      invited: [inviteLink.replace('{code}', code!)],
    }[kind]
    assert.deepEqual(text!.match(/https:\S+/g), [...action, leave])
    assert.deepEqual(html!.replaceAll('&amp;', '&').match(/https:[^"<\s]+/g), [...action, leave])
    // RFC 8058 §3.1
    assert.deepEqual(
      [fields['list-unsubscribe'], fields['list-unsubscribe-post']],
      [`<${leave}>`, 'List-Unsubscribe=One-Click'],
    )
    assert.equal(fields['auto-submitted'], 'auto-generated')
  }
  await mailing(t, server).deliver(invited(), running)
  const { text, html } = await parsed(server.mails[3]!)
  for (const each of [text!, html!]) assert.ok(each.includes(invited().code!), 'without INVITE_LINK the code itself')
})

test("the operator's own letters, filled in once, and escaped in HTML", async t => {
  const templates = temporaryFolder(t)
  writeFileSync(
    join(templates, 'invite.txt'),
    'Subject: {name}: {code}\n\nß {name} <{email}>, {service}\n.\n..\n{unsubscribe}',
  )
  writeFileSync(join(templates, 'invite.html'), '<p title="{name}">{code}<a href="{link}">{unsubscribe}')
  const server = await startMailServer(t)
  const name = `{email} <b onclick='x'>"&amp;{code}</b>`
  const event = invited(0, { name, email: 'a&b@example.com' })
  await mailing(t, server, { templates, inviteLink, service: '{name} & Co' }).deliver(event, running)
  const { subject, text, html } = await parsed(server.mails[0]!)
  assert.equal(visible(subject), `${name}: ${event.code}`)
  const leave = links.unsubscribe(event.contact)
  assert.equal(visible(text)?.trimEnd(), `ß ${name} <a&b@example.com>, {name} & Co\n.\n..\n${leave}`)
  const title = '{email} &lt;b onclick=&#39;x&#39;&gt;&quot;&amp;amp;{code}&lt;/b&gt;'
  const link = `https://app.acme.example/in?a=1&amp;code=${event.code}`
  assert.equal(visible(html)?.trimEnd(), `<p title="${title}">${event.code}<a href="${link}">${leave}`)
})

test('no name and no service is a link, decoded, turned around, a field or a recipient', async t => {
  const server = await startMailServer(t)
  const templates = temporaryFolder(t)
  writeFileSync(join(templates, 'welcome.txt'), 'Subject: {name}|{service}\n\n{name}|{service}|{unsubscribe}')
  for (const [typed, shown = typed] of [
    ['win at https://evil.example/x now'],
    ['a@b.example or www.evil.example'],
    ['J. R. Ewing'],
    ['=?utf-8?q?Claim=3A=20https=3A=2F=2Fevil=2Ecom?='],
    ['Claim =?UTF-8?B?aHR0cHM6Ly9ldmlsLmNvbQ==?= now'],
    ['A\u202Ed\u2066a\u200F \u061CŠ', 'Ada Š'],
    ['Ada\r\nBcc: x@evil.example', 'Ada Bcc: x@evil.example'],
  ] as [string, string?][]) {
    await mailing(t, server, { templates, service: typed }).deliver(joined(0, { name: typed }), running)
    const { to, subject, text } = await parsed(server.mails.at(-1)!)
    const [line] = text!.split('|https:')
    for (const each of [to![0]!.name, ...subject!.split('|'), ...line!.split('|')]) {
      assert.equal(visible(each), shown)
      assert.doesNotMatch(each!, /:\/\/|\w\.\w|\w@\w|=\?/)
    }
  }
  const nasty = fc.constantFrom('\r\nBcc: x@evil.example', '\n\n<b>', '\r', '\t', '=?utf-8?q?=0aTo:_x?=', ', <x@y.z>')
  const part = fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 30 }), fc.string({ maxLength: 100 }))
  const names = fc.array(part, { minLength: 1, maxLength: 3 }).map(parts => parts.join(''))
  const destination = mailing(t, server, { templates })
  await fc.assert(
    fc.asyncProperty(names, async name => {
      assert.deepEqual(await destination.deliver(joined(2, { name }), running), { is: 'delivered' })
      const mail = server.mails.at(-1)!
      assert.deepEqual([mail.to, fieldsOf(mail)], [['Ada.Lovelace.2@example.com'], FIELDS])
      assert.equal((await parsed(mail)).subject?.endsWith('|Acme'), true)
    }),
    { numRuns: isSlow ? 500 : 20 },
  )
})

test('a sample has a name, a code and links that no contact has, and the answer of the server', async t => {
  const server = await startMailServer(t)
  const result = await mailing(t, server).sample('invited', 'you@example.com', running)
  assert.deepEqual(result, { is: 'delivered', response: '250 OK: message queued' })
  const { messageId, to } = await parsed(server.mails[0]!)
  assert.match(messageId!, /^<check_[0-9a-f-]{36}_\d{13}@acme\.example>$/)
  assert.deepEqual([to?.[0]?.address, to?.[0]?.name], ['you@example.com', 'Ada Lovelace'])
})

test('our letters fit a phone and are legible, in light and dark', {
  skip: !isSlow && 'it takes seconds of a processor; it runs in .ci/run',
}, async t => {
  const { assertAccessible, openPage, startBrowser } = await import('../harness/browser.ts')
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  const server = await startMailServer(t)
  for (const link of [null, inviteLink]) {
    const destination = mailing(t, server, { inviteLink: link, service: 'Acme & Sons' })
    const name = 'W'.repeat(100)
    for (const event of [joined(0, { name }), invited(0, { name }), confirmation(name)])
      await destination.deliver(event, running)
  }
  for (const [i, mail] of server.mails.entries()) {
    const { html } = await parsed(mail)
    for (const colorScheme of ['light', 'dark'] as const) {
      const viewport = { width: 375, height: 667 }
      const { page, complaints, origins } = await openPage(t, browser, 'about:blank', { colorScheme, viewport })
      await page.setContent(html!)
      await assertAccessible(page, `${i}, ${colorScheme}`)
      assert.deepEqual([complaints, [...origins].filter(origin => origin !== 'null')], [[], []])
    }
  }
})
