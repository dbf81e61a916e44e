import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { readConfig } from '../../src/config/config.ts'
import { type Links, linksOf } from '../../src/confirm/token.ts'
import { mail } from '../../src/destinations/mail.ts'
import {
  type Letter,
  type MailSettings,
  readMailbox,
  readSmtpUrl,
  subjectOf,
} from '../../src/destinations/mail-settings.ts'
import { filled, unknownPlaceholder } from '../../src/destinations/placeholders.ts'
import { isSecret } from '../../src/destinations/secret.ts'
import { isLoopback, isPrivate } from '../../src/http-client/addresses.ts'
import type { EventKind } from '../../src/signup/contact.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { temporaryFolder } from '../harness/folder.ts'

describe('the settings of the webhook', () => {
  test('a secret is whsec_ and 24 to 64 bytes in base64, and every such one can sign', () => {
    const secret = (bytes: number) => `whsec_${randomBytes(bytes).toString('base64')}`
    for (let bytes = 0; bytes <= 80; bytes++)
      assert.equal(isSecret(secret(bytes)), bytes >= 24 && bytes <= 64, `${bytes}`)
    for (let bytes = 24; bytes <= 64; bytes++) assert.ok(new Webhook(secret(bytes)).sign('id', new Date(), '{}'))
  })

  test('anything else is no secret', () => {
    const good = `whsec_${Buffer.alloc(32, 255).toString('base64')}`
    assert.ok(isSecret(good))
    const bad = [
      '',
      'whsec_',
      'secret',
      good.slice(6),
      good.toUpperCase(),
      `whsk_${good.slice(6)}`,
      ` ${good}`,
      `${good}\n`,
      good.replace('=', ''),
      `${good}=`,
      good.replaceAll('/', '_'),
      `${good} ${good}`,
      good.replace('_', '_é'),
    ]
    for (const text of bad) assert.equal(isSecret(text), false, JSON.stringify(text))
    fc.assert(fc.property(fc.string({ unit: 'binary' }), text => !isSecret(text)))
  })

  test('plain HTTP may go to this machine and to private networks, as the host says', () => {
    const near = [
      'localhost',
      'n8n:5678',
      'hooks.svc.internal',
      '10.0.0.1',
      '[::1]',
      '[fc00::1]',
      '[::ffff:192.168.1.2]',
    ]
    const far = ['localhost.example.com', 'localhost@example.com', '10.0.0.1.example.com', '8.8.8.8', '[2001:db8::1]']
    for (const host of near) assert.equal(isPrivate(`http://${host}/x?y`), true, host)
    for (const host of far) assert.equal(isPrivate(`http://${host}/localhost?x=10.0.0.1`), false, host)
  })
})

describe('SMTP_URL', () => {
  const login = { user: 'me@example.com', password: 'p:/ß %' }
  for (const [text, expected] of Object.entries({
    'smtp://mail.example.com': { host: 'mail.example.com', port: 587, secure: false, login: null },
    'smtps://mail.example.com': { host: 'mail.example.com', port: 465, secure: true, login: null },
    'SMTPS://Mail.Example.com:2465/': { host: 'mail.example.com', port: 2465, secure: true, login: null },
    'smtp://me%40example.com:p%3A%2F%C3%9F%20%25@mailpit:25': { host: 'mailpit', port: 25, secure: false, login },
    'smtp://[::1]:2525': { host: '::1', port: 2525, secure: false, login: null },
    'smtp://127.0.0.1': { host: '127.0.0.1', port: 587, secure: false, login: null },
  })) {
    test(`${text} is accepted`, () => assert.deepEqual(readSmtpUrl(text), expected))
  }

  for (const text of [
    'mail.example.com',
    'mail.example.com:587',
    'http://mail.example.com',
    'smtp://',
    'smtp://mail.example.com:0',
    'smtp://mail.example.com/inbox',
    'smtp://mail.example.com?tls=no',
    'smtp://me@mail.example.com',
    'smtp://:secret@mail.example.com',
    'smtp://me:%zz@mail.example.com',
    'smtp://me:a%0D%0Ab@mail.example.com',
    'smtp://mail example.com',
    'smtp://bücher.example',
  ]) {
    test(`${text} is not`, () => assert.equal(readSmtpUrl(text), undefined))
  }

  test('every login that has no control characters is read as it was encoded', () => {
    const part = fc.string({ unit: 'grapheme', minLength: 1 }).filter(text => !/\p{Cc}/u.test(text))
    fc.assert(
      fc.property(part, part, (user, password) => {
        const text = `smtp://${encodeURIComponent(user)}:${encodeURIComponent(password)}@localhost`
        assert.deepEqual(readSmtpUrl(text)?.login, { user, password })
      }),
    )
  })
})

test('only this machine is loopback', () => {
  for (const host of ['localhost', '127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])
    assert.ok(isLoopback(host), host)
  for (const host of ['localhost.example.com', 'localhost.', '0.0.0.0', '10.0.0.1', 'mailpit', '::', '::2']) {
    assert.equal(isLoopback(host), false, host)
  }
})

describe('MAIL_FROM and MAIL_SUBJECT', () => {
  test('a sender is an address, with a name or without', () => {
    const address = 'hello@example.com'
    assert.deepEqual(readMailbox(address), { name: '', address })
    for (const [text, name] of [
      [`Acme <${address}>`, 'Acme'],
      [`"Acme, Inc." <${address}>`, 'Acme, Inc.'],
      [`Zoë 李<${address}>`, 'Zoë 李'],
    ] as const) {
      assert.deepEqual(readMailbox(text), { name, address }, text)
    }
  })

  test('anything else is none', () => {
    for (const text of [
      'hello',
      'a@b',
      'hello@example.com, x@y.com',
      'A <B <hello@example.com>>',
      '<hello@example.com',
    ]) {
      assert.equal(readMailbox(text), undefined, text)
    }
    assert.equal(readMailbox('A\r\nBcc: x@example.com <hello@example.com>'), undefined)
    assert.equal(readMailbox(`${'x'.repeat(101)} <hello@example.com>`), undefined)
  })

  test('a subject is one line with placeholders that exist', () => {
    for (const text of ['Hi', 'Hi {name}, {email}: {service}', '{', 'a {b c}', 'x'.repeat(200)]) {
      assert.equal(subjectOf('joined').read(text), text)
    }
    for (const text of [
      'Hi\r\nBcc: x',
      'Hi\u2028',
      '{first_name}',
      '{{name}}',
      '{ name }',
      '{Name}',
      'x'.repeat(201),
    ]) {
      assert.equal(subjectOf('joined').read(text), undefined, text)
    }
  })
})

describe('placeholders', () => {
  test('the braces of style sheets are none', () => {
    assert.equal(
      unknownPlaceholder('<style>p { color: red } a{b:c}\n@media { p{} }</style> {} {name}', ['name']),
      undefined,
    )
    assert.equal(unknownPlaceholder('{name} {{email}} {nome}', ['name', 'email']), '{{email}}')
  })

  test('they are filled in once, whatever the values are', () => {
    const value = fc.oneof(fc.constantFrom('{name}', '{email}', '$&', '$1', '{'), fc.string())
    fc.assert(
      fc.property(value, value, value, (name, email, service) => {
        const values = { name, email, service }
        assert.equal(
          filled('{name}|{email}|{service}|{name}', values, x => x),
          `${name}|${email}|${service}|${name}`,
        )
      }),
    )
  })
})

describe('the configuration of mails', () => {
  const set = { SMTP_URL: 'smtp://me:secret@mail.example.com', MAIL_FROM: 'hello@example.com' }
  const mistakesIn = async (env: Record<string, string>) => {
    const result = await readConfig(env)
    return 'mistakes' in result ? result.mistakes : []
  }

  test('it is off by default', async () => {
    const result = await readConfig({})
    assert.ok('config' in result)
    assert.equal(result.config.mail, null)
  })

  test('a server and a sender are enough', async () => {
    const result = await readConfig({ ...set, SERVICE_NAME: 'Acme' })
    assert.ok('config' in result, JSON.stringify(result))
    const login = { user: 'me', password: 'secret' }
    assert.deepEqual(result.config.mail, {
      server: { host: 'mail.example.com', port: 587, secure: false, login },
      from: { name: '', address: 'hello@example.com' },
      tells: ['joined', 'invited'],
      letters: {
        joined: { subject: '{service}: you are on the list', textFile: null, htmlFile: null },
        invited: { subject: '{service}: you are invited', textFile: null, htmlFile: null },
        confirmation: { subject: '{service}: please confirm your address', textFile: null, htmlFile: null },
      },
      inviteLink: null,
      rate: 60,
      service: 'Acme',
      heloName: 'example.com',
    })
  })

  test('the server is told the host of BASE_URL, unless it is no name on the internet', async () => {
    for (const [BASE_URL, heloName] of [
      ['https://Waitlist.example.net:8443', 'waitlist.example.net'],
      ['https://bücher.example', 'xn--bcher-kva.example'],
      ['http://localhost:8080', 'example.com'],
      ['http://192.0.2.1', 'example.com'],
      ['http://[2001:db8::1]', 'example.com'],
    ] as const) {
      const result = await readConfig({ ...set, BASE_URL })
      assert.ok('config' in result, JSON.stringify(result))
      assert.equal(result.config.mail?.heloName, heloName)
    }
  })

  test('a server without a sender is a mistake, and no mistake repeats the password', async () => {
    assert.deepEqual(await mistakesIn({ SMTP_URL: set.SMTP_URL }), [
      'MAIL_FROM is missing: mails that are sent through SMTP_URL need a sender',
    ])
    const [mistake, ...others] = await mistakesIn({ ...set, SMTP_URL: 'smtp://me:secret@mail.example.com/x' })
    assert.deepEqual(others, [])
    assert.ok(mistake!.startsWith('SMTP_URL must be smtp://') && !mistake!.includes('secret'))
    assert.equal((await mistakesIn({ ...set, MAIL_FROM: 'x' })).length, 1)
    assert.equal((await mistakesIn({ ...set, MAIL_SUBJECT: '{nome}' })).length, 1)
    for (const rate of ['0', '6001', 'x']) assert.equal((await mistakesIn({ ...set, MAIL_RATE: rate })).length, 1, rate)
  })

  test('a file that cannot be used stops the start, with what is wrong', async t => {
    const folder = temporaryFolder(t)
    const path = (name: string, content: string | Buffer) => {
      writeFileSync(join(folder, name), content)
      return join(folder, name)
    }
    mkdirSync(join(folder, 'folder'))
    const result = await readConfig(set)
    assert.ok('config' in result)
    const settings = result.config.mail as MailSettings
    const opened = (kind: EventKind, files: Partial<Letter>, links: (() => Links) | null = null) =>
      mail({ ...settings, letters: { ...settings.letters, [kind]: { ...settings.letters[kind], ...files } } }, links)
    const linked = () => linksOf('https://waitlist.example.com', '00')
    for (const [file, why] of [
      [join(folder, 'missing'), /cannot be used: ENOENT/],
      [join(folder, 'folder'), /cannot be used: it is not a file/],
      [path('large', 'x'.repeat(262_145)), /cannot be used: it has 262145 bytes, and 262144 are allowed/],
      [path('latin1', Buffer.from('Gr\xfc\xdfe', 'latin1')), /is not UTF-8/],
      [
        path('unknown', 'Hi {first_name}'),
        /has \{first_name\}, but the placeholders are \{name\}, \{email\}, \{service\}/,
      ],
      [path('empty', '\n'), /is empty/],
    ] as const) {
      for (const [setting, kind, files] of [
        ['MAIL_TEXT_FILE', 'joined', { textFile: file }],
        ['MAIL_HTML_FILE', 'joined', { htmlFile: file }],
        ['INVITE_TEXT_FILE', 'invited', { textFile: file }],
        ['INVITE_HTML_FILE', 'invited', { htmlFile: file }],
      ] as const) {
        assert.throws(
          () => opened(kind, files),
          error =>
            error instanceof OperatorError &&
            error.message.startsWith(`${setting}: ${file} `) &&
            why.test(error.message),
          file,
        )
      }
    }
    opened('joined', { textFile: path('good', 'x'.repeat(262_144)) })
    const leaving = path('leaving', 'Leave: {unsubscribe}')
    const confirming = path('confirming', 'Confirm: {link}')
    const both = path('both', '{link} {unsubscribe}')
    for (const [kind, file, links, why] of [
      ['joined', leaving, null, /^MAIL_TEXT_FILE: \S+ has \{unsubscribe\}, but CONFIRM=mail is not set$/],
      ['invited', path('plain', 'Hi {name}'), linked, /^INVITE_TEXT_FILE: \S+ lacks \{unsubscribe\}, which this mail/],
      [
        'confirmation',
        leaving,
        linked,
        /^CONFIRM_TEXT_FILE: \S+ lacks \{link\}, which this mail needs with CONFIRM=mail$/,
      ],
      ['confirmation', confirming, linked, /^CONFIRM_TEXT_FILE: \S+ lacks \{unsubscribe\}/],
      ['invited', both, linked, /^INVITE_TEXT_FILE: \S+ has \{link\}, but INVITE_LINK is not set$/],
      ['joined', both, linked, /^MAIL_TEXT_FILE: \S+ has \{link\}, but the placeholders are \{name\}, \{email\}/],
    ] as const) {
      assert.throws(
        () => opened(kind, { textFile: file }, links),
        error => error instanceof OperatorError && why.test(error.message),
        file,
      )
    }
    opened('joined', { htmlFile: leaving }, linked)
    opened('confirmation', { textFile: both, htmlFile: both }, linked)
    // While nobody is asked, it is not read.
    opened('confirmation', { textFile: both, htmlFile: both })
  })
})
