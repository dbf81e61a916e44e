import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { linksIn, openDestinations } from '../../src/app/adapters.ts'
import { type Config, readConfig } from '../../src/config/load.ts'
import { type SettingName, settings } from '../../src/config/settings.ts'
import type { EventKind } from '../../src/signup/contact.ts'
import { mistakesIn } from '../harness/service.ts'

type Environment = Record<string, string>

const secret = `whsec_${Buffer.alloc(24, 'x').toString('base64')}`
const slack = 'https://hooks.slack.com/services/T00000000/B00000000/x'
const tls = { TLS_CERT_FILE: 'cert.pem', TLS_KEY_FILE: 'key.pem' }

/** For each setting: texts that are refused. Each holds a word that must not be repeated. */
const refused: Partial<Record<SettingName, readonly string[]>> = {
  BASE_URL: ['seCret', 'ftp://seCret', 'https://seCret/path', 'https://user:seCret@host', 'https://host?seCret'],
  HOST: ['se\u0007Cret', 'seCret'.repeat(50), 'seCret:80', 'http://seCret', 'seCret/', '8080', '[::1]'],
  PORT: ['seCret', '-1', '65536', '80.5', '1e3', '0x50', '８０'],
  CHALLENGE: ['seCret', 'ALTCHA', 'captcha'],
  CHALLENGE_SITE_KEY: ['two seCrets'],
  CHALLENGE_SECRET: ['two seCrets', 'seCret'.repeat(100)],
  CHALLENGE_URL: ['seCret', 'ftp://seCret', 'https://host/?seCret'],
  HOLD_ABOVE: ['seCret', '-1', '1000001', '200/seCret', '200/3600', '200/86401s', '200/0'],
  HOLD_SUSPICIOUS: ['seCret', 'yes'],
  DISCLOSE_MEMBERSHIP: ['seCret', 'no'],
  DATABASE_URL: [
    'seCret',
    'sqlite:',
    'sqlite://seCret/list',
    'sqlite::memory:',
    './seCret.db',
    'mysql://user:seCret@host/list',
    'postgres://user:seCret@host/',
    'postgres://user:seCret@host/list/more',
    'postgres://user:se/Cret@host/list',
    'postgres://user:seCret@host/list?sslmode=yes',
    'postgres://user:seCret@host/list?sslmod=require',
    'postgres://user:seCret@host,other/list',
  ],
  RATE_LIMIT: ['seCret', '0', '1.5', '1000001', '20/0s', '20/25h', '20/600', '20/', '/10m', '2/1m/1m'],
  TRUST_PROXY: ['seCret', 'true', '100', '-1', '10.0.0.1', '10.0.0.0/33', '10.0.0.0/8,seCret', '10.0.0.0/8,', '::/129'],
  CORS_ORIGINS: ['seCret', '*', 'null', 'https://seCret/path', 'https://a.example,seCret', 'https://a.example,'],
  PROVIDER: ['seCret', 'Loops', 'loops,kit'],
  PROVIDER_FIELDS: ['seCret', '=seCret', 'seCret=1,seCret=2'],
  WEBHOOK_URL: ['seCret', 'ftp://seCret', 'https://user:seCret@host/', 'https://host/#seCret'],
  WEBHOOK_SECRET: ['seCret', 'whsec_seCret', `whsec_${'A'.repeat(24)}`, `whsec_${'A'.repeat(92)}`, `${secret} seCret`],
  SLACK_WEBHOOK_URL: ['seCret', 'http://hooks.slack.com/services/seCret', 'https://u:seCret@hooks.slack.com/'],
  DISCORD_WEBHOOK_URL: ['seCret', 'http://discord.com/api/webhooks/1/seCret', 'https://discord.com/#seCret'],
  SMTP_URL: ['seCret', 'http://seCret', 'smtp://seCret@host', 'smtp://me:seCret@host/path', 'smtps://me:seCret@host:0'],
  MAIL_FROM: ['seCret', 'seCret@host', 'Me <seCret>', 'se\tCret <me@example.com>'],
  OWNER_MAIL: ['seCret', 'seCret@host', 'me@example.com, seCret@example.com', 'Me <me@example.com>\r\nBcc: seCret'],
  CONFIRM: ['seCret', 'MAIL', 'true'],
  INVITE_LINK: ['https://seCret.example/in', 'https://{code}.seCret.example/', 'ftp://seCret/{code}'],
  TRACK_SOURCES: ['seCret', 'yes', '1'],
  ADMIN_LISTEN: ['seCret', 'localhost', '9090', ':9090', 'localhost:65536', '::1:9090', `se\nCret:1`],
  ADMIN_TOKEN: ['seCret', 'x'.repeat(31), `seCret ${'x'.repeat(40)}`, 'x'.repeat(513)],
  MAILS: ['seCret', 'welcome, none', 'welcome;invite'],
  MAIL_RATE: ['seCret', '5', '6001'],
  EVENT_NAME: ['seCret name', 'seCret/name', 'x'.repeat(101)],
  INVITED_EVENT_NAME: ['seCret name', 'seCret/name', 'x'.repeat(101)],
  SERVICE_NAME: ['seCret\nname', 'x'.repeat(101)],
  SERVICE_DESCRIPTION: ['seCret\tname', 'x'.repeat(501)],
  SHUTDOWN_DELAY: ['seCret', '1000', '2001ms', '-1s'],
  LOG_LEVEL: ['seCret', 'INFO', 'all'],
}

const loops = { PROVIDER: 'loops', LOOPS_API_KEY: 'key' }
const mailing = { SMTP_URL: 'smtps://me:secret@smtp.example.com', MAIL_FROM: 'hello@example.com' }

describe('the configuration', () => {
  test('every documented default is what its own rule allows', async () => {
    for (const [name, setting] of Object.entries(settings)) {
      if (!('default' in setting)) continue
      assert.notEqual(setting.read(setting.default), undefined, name)
      assert.deepEqual(await readConfig({ [name]: setting.default }), await readConfig({}), name)
    }
  })

  for (const [name, texts] of Object.entries(refused)) {
    test(`${name}: what is not allowed is refused, with what is, and is not repeated`, async () => {
      const { allowed } = settings[name as SettingName]
      for (const text of texts) {
        assert.deepEqual(await mistakesIn({ [name]: text }), [`${name} ${allowed}`], JSON.stringify(text))
      }
    })
  }

  test('every setting that has a rule was tried', () => {
    const anything = ['TLS_CERT_FILE', 'TLS_KEY_FILE', 'MAIL_TEMPLATES', 'BLOCKED_DOMAINS_FILE', 'MESSAGES_FILE']
    assert.deepEqual([...Object.keys(refused), ...anything].sort(), Object.keys(settings).sort())
  })

  test('all mistakes are told at once, each beginning with its variable', async () => {
    const wrong = Object.fromEntries(Object.entries(refused).map(([name, texts]) => [name, texts[0]!]))
    const told = await mistakesIn({ ...wrong, TLS_KEY_FILE: 'key.pem' })
    const named = told.map(mistake => mistake.split(' ')[0])
    assert.deepEqual([...named].sort(), [...Object.keys(refused), 'TLS_CERT_FILE'].sort())
    assert.doesNotMatch(told.join(), /se.?Cret/)
  })

  test('an empty value and one of spaces count as unset; spaces around a value do not matter', async () => {
    for (const name of Object.keys(settings)) {
      assert.deepEqual(await readConfig({ [name]: '' }), await readConfig({}), name)
      assert.deepEqual(await readConfig({ [name]: ' \t' }), await readConfig({}), name)
    }
    assert.equal((await readConfig({ PORT: ' 9000 ' })).port, 9_000)
  })

  test('values are read as meant', async () => {
    const postgres = 'postgresql://me:p%40ss@[::1]:6432/list?sslmode=verify-full'
    const webhook = { url: 'https://hook.example/a?b=c', secrets: [secret, secret] }
    const rows: readonly (readonly [Environment, Partial<Config>])[] = [
      [{ BASE_URL: 'HTTPS://Waitlist.Example.com:443/' }, { baseUrl: 'https://waitlist.example.com' }],
      [{ DATABASE_URL: 'sqlite:/var/lib/list.db' }, { store: { kind: 'sqlite', path: '/var/lib/list.db' } }],
      [{ DATABASE_URL: 'postgres://db/list' }, { store: { kind: 'postgres', url: 'postgres://db/list' } }],
      [{ DATABASE_URL: postgres }, { store: { kind: 'postgres', url: postgres } }],
      [{ TRUST_PROXY: '0' }, { proxies: { kind: 'none' } }],
      [{ TRUST_PROXY: '2' }, { proxies: { kind: 'hops', hops: 2 } }],
      [{ TRUST_PROXY: '10.0.0.0/8, ::/8' }, { proxies: { kind: 'networks', networks: ['10.0.0.0/8', '::/8'] } }],
      [{ CORS_ORIGINS: 'https://A.example, http://b:3000' }, { corsOrigins: ['https://a.example', 'http://b:3000'] }],
      [{ WEBHOOK_URL: 'https://Hook.example/a?b=c', WEBHOOK_SECRET: `${secret}  ${secret}` }, { webhook }],
      [{ SLACK_WEBHOOK_URL: slack }, { channels: { slack, discord: undefined, 'owner-mail': undefined } }],
      [{ SHUTDOWN_DELAY: '0' }, { shutdownDelay: 0 }],
      [{ HOLD_ABOVE: '200/1d' }, { holds: { above: { count: 200, time: 86_400_000 }, suspicious: false } }],
      [{ HOLD_ABOVE: '0' }, { holds: { above: { count: 0, time: 3_600_000 }, suspicious: false } }],
      [{ RATE_LIMIT: '3' }, { quota: { limit: 3, window: 600 } }],
      [tls, { tls: { certFile: 'cert.pem', keyFile: 'key.pem' }, cookie: { secure: true, crossSite: false } }],
      [{ BASE_URL: 'https://w.example' }, { cookie: { secure: true, crossSite: false } }],
      [{ BASE_URL: 'http://w.example' }, { cookie: { secure: false, crossSite: false } }],
    ]
    for (const [env, expected] of rows) assert.partialDeepStrictEqual(await readConfig(env), expected)
  })

  test('deliveries are stored under the names of the destinations that take the event', async () => {
    const https = { BASE_URL: 'https://waitlist.example.com' }
    for (const provider of [{ ...loops }, { PROVIDER: 'buttondown', BUTTONDOWN_API_KEY: 'key' }, {}]) {
      for (const MAILS of ['welcome', 'invite', 'none']) {
        const webhook = { WEBHOOK_URL: 'https://hook.example', WEBHOOK_SECRET: secret }
        const config = await readConfig({ ...https, ...mailing, ...provider, ...webhook, MAILS, CONFIRM: 'mail' })
        const { events, close } = await openDestinations(config, linksIn(config, '00'))
        await close()
        const namesFor = (event: EventKind) =>
          events.flatMap(({ name, events }) => (events.includes(event) ? name : [])).sort()
        const { signupTargets, invitationTargets } = config
        assert.deepEqual(signupTargets.destinations.toSorted(), namesFor('joined'))
        assert.deepEqual(invitationTargets.destinations.toSorted(), namesFor('invited'))
        assert.deepEqual([signupTargets.confirmation], namesFor('confirmation'))
      }
    }
  })

  test('what contradicts is refused, and a sample of our documents is', async () => {
    const [http, https] = [{ BASE_URL: 'http://w.example' }, { BASE_URL: 'https://w.example' }]
    const [cap, confirm] = [
      { CHALLENGE: 'cap', CHALLENGE_SECRET: 'x' },
      { ...mailing, CONFIRM: 'mail' },
    ]
    const rows: readonly (readonly [Environment, RegExp])[] = [
      [{ TLS_CERT_FILE: 'cert.pem' }, /^TLS_KEY_FILE is missing/],
      [{ TLS_KEY_FILE: 'key.pem' }, /^TLS_CERT_FILE is missing/],
      [{ ...tls, ...http }, /^BASE_URL must start with https/],
      [{ WEBHOOK_URL: 'http://localhost/' }, /^WEBHOOK_SECRET is missing.*docs\/events/],
      [{ CHALLENGE: 'hcaptcha' }, /^CHALLENGE_SECRET is missing: hcaptcha needs it$/],
      [cap, /^CHALLENGE_URL must be the address of your Cap with the site key/],
      [{ ...cap, CHALLENGE_URL: 'https://cap.example/siteverify' }, /^CHALLENGE_URL must be/],
      [{ SMTP_URL: mailing.SMTP_URL }, /^MAIL_FROM is missing/],
      [{ OWNER_MAIL: 'me@example.com' }, /^SMTP_URL is missing: mails to OWNER_MAIL/],
      [{ ...https, CONFIRM: 'mail' }, /^SMTP_URL is missing: CONFIRM=mail needs a mail server/],
      [{ ...confirm, ...tls }, /^BASE_URL must be an https address/],
      [{ ...confirm, ...http }, /^BASE_URL must be an https address with CONFIRM=mail/],
      [{ EVENT_NAME: 'a', INVITED_EVENT_NAME: 'a' }, /^INVITED_EVENT_NAME must not be the/],
      [{ DATABASE_URL: 'postgres://me:your-password@db/list' }, /^DATABASE_URL is a sample from our documents/],
    ]
    for (const [env, sentence] of rows) {
      const mistakes = await mistakesIn(env)
      assert.equal(mistakes.length, 1, JSON.stringify(env))
      assert.match(mistakes[0]!, sentence)
    }
    await readConfig({ ...tls, ...https })
    for (const BASE_URL of ['http://localhost:8080', https.BASE_URL]) await readConfig({ ...confirm, BASE_URL })
  })

  test('what is unsafe or unknown is warned of', async () => {
    const webhook = (url: string) => ({ ...tls, WEBHOOK_URL: url, WEBHOOK_SECRET: secret })
    const verifier = (url: string) => ({ ...tls, CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x', CHALLENGE_URL: url })
    const tool = (more: Environment) => ({ ...tls, ...loops, ...more })
    const https = { BASE_URL: 'https://waitlist.example.com' }
    const database = (url: string) => ({ ...tls, DATABASE_URL: url })
    const rows: readonly (readonly [Environment, ...warnings: RegExp[]])[] = [
      [{}, /plain HTTP/],
      [https, /Set TRUST_PROXY/],
      [{ ...https, TRUST_PROXY: '1' }],
      [tls],
      [{ ...tls, TRUST_PROXY: '10.0.0.0/8,0.0.0.0/0' }, /trusts every address/],
      [{ TRUST_PROXY: '::/0' }, /plain HTTP/, /trusts every address/],
      [{ ...tls, HOST: '0.0.0.0' }, /^BASE_URL is not set: links, catalog/],
      [{ ...tls, ...mailing }, /^BASE_URL is not set: links in mails/],
      [webhook('http://hook.example/'), /^WEBHOOK_URL is plain HTTP/],
      [webhook('http://n8n:5678/')],
      [verifier('http://verifier.example'), /^CHALLENGE_URL is plain HTTP/],
      [tool({ LOOPS_BASE_URL: 'http://loops.example' }), /^LOOPS_BASE_URL is plain HTTP/],
      [tool({ LOOPS_BASE_URL: 'http://10.0.0.7:8080' })],
      [tool({ RATE_LIMITS: 'x', KIT_API_KEY: 'x', OTHER: 'x' }), /^Misspelt.*: RATE_LIMITS, KIT_API_KEY$/],
      [{ ...tls, ADMIN_LISTEN: '[::1]:9090' }],
      [{ ...tls, ADMIN_LISTEN: '0.0.0.0:9090' }, /^ADMIN_LISTEN is not this machine alone/],
      [database('postgres://me@db/list')],
      [database('postgres://me@db.example.com/list'), /sslmode/],
      [database('postgres://me@db.example.com/list?sslmode=verify-full')],
    ]
    for (const [env, ...sentences] of rows) {
      const { warnings } = await readConfig(env)
      assert.equal(warnings.length, sentences.length, `${JSON.stringify(env)}: ${warnings.join('\n')}`)
      for (const [i, sentence] of sentences.entries()) assert.match(warnings[i]!, sentence)
    }
  })
})
