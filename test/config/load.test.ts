import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Config, readConfig } from '../../src/config/load.ts'
import { type SettingName, settings } from '../../src/config/settings.ts'
import { mistakesIn } from '../harness/service.ts'

type Environment = Record<string, string>

const secret = `whsec_${Buffer.alloc(24, 'x').toString('base64')}`
const slack = 'https://hooks.slack.com/services/T00000000/B00000000/x'
const discord = 'https://ptb.discord.com/api/webhooks/1/x'
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
      [
        { TRUST_PROXY: '10.0.0.0/8, fd00::/8' },
        { proxies: { kind: 'networks', networks: ['10.0.0.0/8', 'fd00::/8'] } },
      ],
      [
        { CORS_ORIGINS: 'https://A.example, http://localhost:3000' },
        { corsOrigins: ['https://a.example', 'http://localhost:3000'] },
      ],
      [{ WEBHOOK_URL: 'https://Hook.example/a?b=c', WEBHOOK_SECRET: `${secret}  ${secret}` }, { webhook }],
      [
        { SLACK_WEBHOOK_URL: slack, DISCORD_WEBHOOK_URL: discord },
        { channels: { slack, discord, 'owner-mail': undefined } },
      ],
      [{ SHUTDOWN_DELAY: '0' }, { shutdownDelay: 0 }],
      [{ HOLD_ABOVE: '200/1d' }, { holds: { above: { count: 200, time: 86_400_000 }, suspicious: false } }],
      [{ HOLD_ABOVE: '0' }, { holds: { above: { count: 0, time: 3_600_000 }, suspicious: false } }],
      [{ RATE_LIMIT: '3' }, { quota: { limit: 3, window: 600 } }],
      [tls, { tls: { certFile: 'cert.pem', keyFile: 'key.pem' } }],
    ]
    for (const [env, expected] of rows) assert.partialDeepStrictEqual(await readConfig(env), expected)
  })

  test('the cookie is Secure exactly when the public address is https', async () => {
    const secure = { secure: true, crossSite: false }
    assert.deepEqual((await readConfig(tls)).cookie, secure)
    assert.deepEqual((await readConfig({ BASE_URL: 'https://waitlist.example.com' })).cookie, secure)
    assert.equal((await readConfig({ BASE_URL: 'http://waitlist.example.com' })).cookie.secure, false)
  })
})

describe('contradictions', () => {
  const https = { BASE_URL: 'https://waitlist.example.com' }
  const cap = { CHALLENGE: 'cap', CHALLENGE_SECRET: 'x' }
  const cases: [what: string, env: Environment, mistake: RegExp][] = [
    ['a certificate without a key', { TLS_CERT_FILE: 'cert.pem' }, /^TLS_KEY_FILE is missing/],
    ['a key without a certificate', { TLS_KEY_FILE: 'key.pem' }, /^TLS_CERT_FILE is missing/],
    ['TLS at an http address', { ...tls, BASE_URL: 'http://waitlist.example.com' }, /^BASE_URL must start with https/],
    ['a webhook without a secret', { WEBHOOK_URL: 'http://localhost/' }, /^WEBHOOK_SECRET is missing.*docs\/events/],
    ['a verifier without a secret', { CHALLENGE: 'hcaptcha' }, /^CHALLENGE_SECRET is missing: hcaptcha needs it$/],
    ['a Cap without its address', cap, /^CHALLENGE_URL must be the address of your Cap with the site key/],
    ['a Cap without a site key', { ...cap, CHALLENGE_URL: 'https://cap.example/siteverify' }, /^CHALLENGE_URL must be/],
    ['mails without a sender', { SMTP_URL: mailing.SMTP_URL }, /^MAIL_FROM is missing/],
    ['a mailbox without a server', { OWNER_MAIL: 'me@example.com' }, /^SMTP_URL is missing: mails to OWNER_MAIL/],
    [
      'confirmations without a server',
      { CONFIRM: 'mail', ...https },
      /^SMTP_URL is missing: CONFIRM=mail needs a mail/,
    ],
    ['confirmations without an address', { CONFIRM: 'mail', ...mailing, ...tls }, /^BASE_URL must be an https address/],
    [
      'confirmations in the clear',
      { CONFIRM: 'mail', ...mailing, BASE_URL: 'http://waitlist.example.com' },
      /^BASE_URL must be an https address with CONFIRM=mail/,
    ],
    ['one port for both listeners', { ADMIN_LISTEN: 'localhost:8080' }, /^ADMIN_LISTEN must not have the same port/],
    ['one name for both events', { EVENT_NAME: 'a', INVITED_EVENT_NAME: 'a' }, /^INVITED_EVENT_NAME must not be the/],
    [
      'a sample from the documents',
      { DATABASE_URL: 'postgres://me:your-password@db/list' },
      /^DATABASE_URL is a sample from our documents: use your own$/,
    ],
  ]
  for (const [what, env, mistake] of cases) {
    test(`${what} is refused`, async () => {
      const told = await mistakesIn(env)
      assert.equal(told.length, 1)
      assert.match(told[0]!, mistake)
    })
  }

  test('the same settings are fine where they agree', async () => {
    await readConfig({ ...tls, ...https })
    await readConfig({ ...mailing, CONFIRM: 'mail', BASE_URL: 'http://localhost:8080' })
    const { confirm, mail } = await readConfig({ ...https, ...mailing, CONFIRM: 'mail' })
    assert.deepEqual([confirm, mail?.letters], [true, ['confirmation', 'joined', 'invited']])
  })
})

describe('warnings', () => {
  const challenge = { CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x', CORS_ORIGINS: 'https://example.com' }
  const webhook = (url: string) => ({ ...tls, WEBHOOK_URL: url, WEBHOOK_SECRET: secret })
  const verifier = (url: string) => ({ ...tls, ...challenge, CHALLENGE_URL: url })
  const loops = { PROVIDER: 'loops', LOOPS_API_KEY: 'key' }
  const https = { BASE_URL: 'https://waitlist.example.com' }
  const cases: [what: string, env: Environment, warnings: readonly RegExp[]][] = [
    ['plain HTTP', {}, [/plain HTTP/]],
    ['https in front without TRUST_PROXY', https, [/Set TRUST_PROXY/]],
    ['https in front with TRUST_PROXY', { ...https, TRUST_PROXY: '1' }, []],
    ['its own TLS', tls, []],
    ['everybody trusted', { ...tls, TRUST_PROXY: '10.0.0.0/8,0.0.0.0/0' }, [/trusts every address/]],
    ['everybody trusted, IPv6', { ...tls, TRUST_PROXY: '::/0' }, [/trusts every address/]],
    ['a webhook in the clear', webhook('http://hook.example/'), [/^WEBHOOK_URL is plain HTTP/]],
    ['a webhook next door', webhook('http://n8n:5678/'), []],
    ['a verifier in the clear', verifier('http://verifier.example'), [/^CHALLENGE_URL is plain HTTP/]],
    [
      'an email tool in the clear',
      { ...tls, ...loops, LOOPS_BASE_URL: 'http://loops.example' },
      [/^LOOPS_BASE_URL is/],
    ],
    ['one next door', { ...tls, ...loops, LOOPS_BASE_URL: 'http://10.0.0.7:8080' }, []],
    [
      'what begins like a setting',
      { ...tls, ...loops, RATE_LIMITS: 'x', KIT_API_KEY: 'x', OTHER: 'x' },
      [/^Misspelt.*: RATE_LIMITS, KIT_API_KEY$/],
    ],
    ['a listener for the operator here', { ...tls, ADMIN_LISTEN: '[::1]:9090' }, []],
    ['one for everybody', { ...tls, ADMIN_LISTEN: '0.0.0.0:9090' }, [/^ADMIN_LISTEN is not this machine alone/]],
    ['PostgreSQL next door', { ...tls, DATABASE_URL: 'postgres://me@db/list' }, []],
    ['PostgreSQL far away, in the clear', { ...tls, DATABASE_URL: 'postgres://me@db.example.com/list' }, [/sslmode/]],
    ['the same with TLS', { ...tls, DATABASE_URL: 'postgres://me@db.example.com/list?sslmode=verify-full' }, []],
    ['several at once', { TRUST_PROXY: '::/0' }, [/plain/, /trusts every/]],
  ]
  for (const [what, env, expected] of cases) {
    test(`${what}: ${expected.length === 0 ? 'nothing' : expected.length} to warn of`, async () => {
      const { warnings } = await readConfig(env)
      assert.equal(warnings.length, expected.length, warnings.join('\n'))
      for (const [i, sentence] of expected.entries()) assert.match(warnings[i]!, sentence)
    })
  }
})
