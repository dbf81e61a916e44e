import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { readConfig } from '../../src/config/load.ts'
import { OperatorError } from '../../src/config/operator.ts'
import { letterOf } from '../../src/mail/letters.ts'
import { mailbox, smtpUrl } from '../../src/mail/settings.ts'
import { render, unknownPlaceholder } from '../../src/mail/template.ts'
import type { EventKind } from '../../src/signup/contact.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { mistakesIn } from '../harness/service.ts'

const set = { SMTP_URL: 'smtp://me:secret@mail.example.com', MAIL_FROM: 'hello@example.com' }

test('SMTP_URL', () => {
  const login = { user: 'me@example.com', password: 'p:/ß %' }
  for (const [text, expected] of Object.entries({
    'smtp://mail.example.com': { host: 'mail.example.com', port: 587, secure: false, login: null },
    'SMTPS://Mail.Example.com/': { host: 'mail.example.com', port: 465, secure: true, login: null },
    'smtp://me%40example.com:p%3A%2F%C3%9F%20%25@mailpit:25': { host: 'mailpit', port: 25, secure: false, login },
    'smtp://[::1]:2525': { host: '::1', port: 2525, secure: false, login: null },
  })) {
    assert.deepEqual(smtpUrl.read(text), expected)
  }
  for (const text of [
    ...['mail.example.com:587', 'http://mail.example.com', 'smtp://', 'smtp://mail.example.com:0'],
    ...['smtp://mail.example.com/inbox', 'smtp://mail.example.com?tls=no', 'smtp://me@mail.example.com'],
    ...['smtp://:secret@mail.example.com', 'smtp://me:%zz@mail.example.com', 'smtp://me:a%0D%0Ab@mail.example.com'],
  ]) {
    assert.equal(smtpUrl.read(text), undefined, text)
  }
})

test('a sender is an address, with a name or without', () => {
  const address = 'hello@example.com'
  assert.deepEqual(mailbox.read(address), { name: '', address })
  assert.deepEqual(mailbox.read(`"Acme, Inc." <${address}>`), { name: 'Acme, Inc.', address })
  assert.deepEqual(mailbox.read(`Zoë 李<${address}>`), { name: 'Zoë 李', address })
  for (const text of ['hello', 'a@b', `${address}, x@y.com`, `A <B <${address}>>`, `A\r\nBcc: x@y.com <${address}>`]) {
    assert.equal(mailbox.read(text), undefined, text)
  }
})

test('what is mailed, and the name that the server is greeted with', async () => {
  for (const [more, letters, heloName] of [
    [{}, ['joined', 'invited'], 'example.com'],
    [{ MAILS: 'none', BASE_URL: 'http://192.0.2.1' }, [], 'example.com'],
    [
      { MAILS: 'invite', CONFIRM: 'mail', BASE_URL: 'https://w.example.net' },
      ['confirmation', 'invited'],
      'w.example.net',
    ],
  ] as const) {
    const { mail } = await readConfig({ ...set, ...more })
    assert.deepEqual([mail?.letters, mail?.heloName], [letters, heloName])
  }
  for (const wrong of [
    { MAIL_FROM: '' },
    { MAILS: 'welcome,news' },
    { SMTP_URL: `${set.SMTP_URL}/x` },
    { MAIL_RATE: '5' },
  ]) {
    const mistakes = await mistakesIn({ ...set, ...wrong })
    assert.equal(mistakes.length, 1, JSON.stringify(wrong))
    assert.doesNotMatch(mistakes[0]!, /secret/)
  }
})

test('placeholders are filled in once, whatever the values are, and the braces of style sheets are none', () => {
  const style = '<style>p { color: red } a{b:c}\n@media { p{} }</style> {} {name}'
  assert.equal(unknownPlaceholder(style, ['name']), undefined)
  assert.equal(unknownPlaceholder('{name} {{email}} {nome}', ['name', 'email']), '{{email}}')
  const value = fc.oneof(fc.constantFrom('{name}', '{email}', '$&', '$1', '{'), fc.string())
  fc.assert(
    fc.property(value, value, (name, email) => {
      assert.equal(render('{name}|{email}|{nome}|{name}', { name, email }), `${name}|${email}|{nome}|${name}`)
    }),
  )
})

test('the operator writes letters in a folder; one that cannot be used stops the start with what is wrong', t => {
  const folder = temporaryFolder(t)
  const write = (name: string, content: string | Buffer) => writeFileSync(join(folder, name), content)
  write('welcome.txt', '\uFEFFSubject: Hi {name}\r\n\r\nWelcome to {service}\r\n{unsubscribe}')
  const welcome = { subject: 'Hi {name}', text: 'Welcome to {service}\r\n{unsubscribe}' }
  assert.deepEqual(letterOf('joined', folder, false), { ...welcome, html: null })
  write('welcome.html', '<p>{name} {unsubscribe}')
  assert.deepEqual(letterOf('joined', folder, false), { ...welcome, html: '<p>{name} {unsubscribe}' })
  assert.deepEqual(letterOf('invited', folder, false), letterOf('invited', null, false))
  mkdirSync(join(folder, 'invite.txt'))
  for (const [kind, content, why] of [
    ['invited', null, /invite\.txt cannot be used: EISDIR/],
    ['joined', Buffer.from('Subject: x\n\nGr\xfc\xdfe {unsubscribe}', 'latin1'), /cannot be used: .*not valid/],
    ['joined', 'Hi {unsubscribe}', /must begin with a line such as "Subject: Welcome"/],
    [
      'joined',
      'Subject: x\n\nHi {first_name} {unsubscribe}',
      /has \{first_name\}, but the placeholders are \{name\}, \{email\}, /,
    ],
    ['joined', 'Subject: {code}\n\n{unsubscribe}', /has \{code\}, but/],
    ['joined', 'Subject: x\n\nHi', /lacks \{unsubscribe\}$/],
    ['confirmation', 'Subject: x\n\n{unsubscribe}', /lacks \{link\}$/],
    ['confirmation', 'Subject: {name}\n\n{link} {unsubscribe}', /has \{name\}, but the placeholders are \{email\}, /],
  ] as const satisfies readonly [EventKind, string | Buffer | null, RegExp][]) {
    if (content !== null) write(kind === 'joined' ? 'welcome.txt' : 'confirm.txt', content)
    assert.throws(
      () => letterOf(kind, folder, false),
      error => error instanceof OperatorError && /^MAIL_TEMPLATES: /.test(error.message) && why.test(error.message),
      String(content),
    )
  }
})

test('{link} in an invitation needs INVITE_LINK', t => {
  const folder = temporaryFolder(t)
  writeFileSync(join(folder, 'invite.txt'), 'Subject: Come in\n\n{link} {unsubscribe}')
  assert.equal(letterOf('invited', folder, true).subject, 'Come in')
  assert.throws(() => letterOf('invited', folder, false), /has \{link\}, but the placeholders are /)
})
