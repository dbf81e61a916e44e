import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'

type Environment = Record<string, string>

const secret = `whsec_${Buffer.alloc(24, 'x').toString('base64')}`
const slack = 'https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX'
const discord = 'https://ptb.discord.com/api/webhooks/1/x'
const challenge = { CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x', CORS_ORIGINS: 'https://example.com' }
const tls = { TLS_CERT_FILE: 'cert.pem', TLS_KEY_FILE: 'key.pem' }

describe('warnings', () => {
  const https = { BASE_URL: 'https://waitlist.example.com' }
  const cases: [what: string, env: Environment, warnings: readonly RegExp[]][] = [
    ['plain HTTP', {}, [/plain HTTP/]],
    ['https in front without TRUST_PROXY', https, [/Set TRUST_PROXY/]],
    ['https in front with TRUST_PROXY', { ...https, TRUST_PROXY: '1' }, []],
    ['its own TLS', tls, []],
    ['everybody trusted', { ...tls, TRUST_PROXY: '10.0.0.0/8,0.0.0.0/0' }, [/trusts every address/]],
    ['everybody trusted, IPv6', { ...tls, TRUST_PROXY: '::/0' }, [/trusts every address/]],
    ['a list in memory', { ...tls, DATABASE_URL: 'sqlite::memory:' }, [/lost when the process ends/]],
    [
      'a webhook in the clear',
      { ...tls, WEBHOOK_URL: 'http://hook.example/', WEBHOOK_SECRET: secret },
      [/WEBHOOK_URL/],
    ],
    ['a webhook next door', { ...tls, WEBHOOK_URL: 'http://n8n:5678/', WEBHOOK_SECRET: secret }, []],
    [
      "a webhook at a cloud's metadata service",
      { ...tls, WEBHOOK_URL: 'http://169.254.169.254/latest', WEBHOOK_SECRET: secret },
      [/^WEBHOOK_URL is a link-local or metadata address/],
    ],
    [
      'the same with TLS',
      { ...tls, WEBHOOK_URL: 'https://metadata.google.internal/', WEBHOOK_SECRET: secret },
      [/^WEBHOOK_URL is a link-local or metadata address/],
    ],
    [
      'a webhook that is a channel',
      { ...tls, WEBHOOK_URL: slack, WEBHOOK_SECRET: secret },
      [/^WEBHOOK_URL is an address of Slack, .* set SLACK_WEBHOOK_URL to it instead/],
    ],
    [
      'a webhook that is another channel',
      { ...tls, WEBHOOK_URL: discord, WEBHOOK_SECRET: secret },
      [/^WEBHOOK_URL is an address of Discord, .* set DISCORD_WEBHOOK_URL to it instead/],
    ],
    [
      'a challenge that may be solved anywhere',
      { ...tls, CHALLENGE: 'turnstile', CHALLENGE_SECRET: 'x' },
      [/^Neither CORS_ORIGINS nor BASE_URL is set: a challenge that was solved on any site is accepted/],
    ],
    ['one for known pages', { ...tls, ...challenge }, []],
    [
      'a verifier in the clear, and settings of other challenges',
      {
        ...tls,
        ...challenge,
        CHALLENGE_URL: 'http://verifier.example',
        CHALLENGE_SCORE: '0.5',
        CHALLENGE_RANGE: '9000',
      },
      [
        /^CHALLENGE_RANGE has no effect with CHALLENGE=turnstile/,
        /^CHALLENGE_SCORE has no effect with CHALLENGE=turnstile/,
        /^CHALLENGE_URL is plain HTTP to a public address: the secret travels in the clear/,
      ],
    ],
    ['a verifier next door', { ...tls, ...challenge, CHALLENGE_URL: 'http://verifier:3000/x/siteverify' }, []],
    [
      'an altcha with an address',
      { ...tls, CHALLENGE: 'altcha', CHALLENGE_URL: 'https://verifier.example' },
      [/^CHALLENGE_URL has no effect with CHALLENGE=altcha/],
    ],
    [
      'an altcha with a key that can be guessed',
      { ...tls, CHALLENGE: 'altcha', CHALLENGE_SECRET: 'changeme' },
      [/^CHALLENGE_SECRET is shorter than 32 characters/],
    ],
    ['a limit that lets nobody in', { ...tls, HOLD_ABOVE: '0' }, [/^HOLD_ABOVE is 0: every new signup is held/]],
    ['one that lets somebody in', { ...tls, HOLD_ABOVE: '1' }, []],
    ['an altcha with a good key', { ...tls, CHALLENGE: 'altcha', CHALLENGE_SECRET: '0123456789abcdef'.repeat(2) }, []],
    ['a listener for the operator here', { ...tls, ADMIN_PORT: '9464' }, []],
    ['one on ::1', { ...tls, ADMIN_PORT: '9464', ADMIN_HOST: '::1' }, []],
    [
      'one for everybody',
      { ...tls, ADMIN_PORT: '9464', ADMIN_HOST: '0.0.0.0' },
      [/^ADMIN_HOST is not this machine alone/],
    ],
    ['PostgreSQL next door', { ...tls, DATABASE_URL: 'postgres://me@db/list' }, []],
    ['PostgreSQL far away, in the clear', { ...tls, DATABASE_URL: 'postgres://me@db.example.com/list' }, [/sslmode/]],
    ['the same with TLS', { ...tls, DATABASE_URL: 'postgres://me@db.example.com/list?sslmode=verify-full' }, []],
    [
      'a secret without an address',
      { ...tls, WEBHOOK_SECRET: secret },
      [/^WEBHOOK_SECRET has no effect without WEBHOOK_URL/],
    ],
    ['a secret with its address', { ...tls, WEBHOOK_URL: 'https://hook.example/', WEBHOOK_SECRET: secret }, []],
    [
      'an interval without a channel',
      { ...tls, CHAT_INTERVAL: '5s' },
      [/^CHAT_INTERVAL has no effect without SLACK_WEBHOOK_URL or DISCORD_WEBHOOK_URL/],
    ],
    ['names without a channel', { ...tls, CHAT_NAMES: 'true' }, [/^CHAT_NAMES has no effect without SLACK_/]],
    ['the defaults without a channel', { ...tls, CHAT_NAMES: 'false', CHAT_INTERVAL: '1m' }, []],
    ['both with one', { ...tls, DISCORD_WEBHOOK_URL: discord, CHAT_NAMES: 'true', CHAT_INTERVAL: '5s' }, []],
    ['channels', { ...tls, DISCORD_WEBHOOK_URL: discord, SLACK_WEBHOOK_URL: slack }, []],
    [
      'channels of each other',
      { ...tls, DISCORD_WEBHOOK_URL: slack, SLACK_WEBHOOK_URL: discord },
      [/^SLACK_WEBHOOK_URL is not an address of hooks\.slack\.com/, /^DISCORD_WEBHOOK_URL is not .* discord\.com/],
    ],
    ['a channel next door', { ...tls, SLACK_WEBHOOK_URL: 'http://127.0.0.1:8065/hooks/x' }, []],
    [
      'a time limit for no provider',
      { ...tls, PROVIDER_TIMEOUT: '500ms' },
      [/^PROVIDER_TIMEOUT has no .* without PROVIDER/],
    ],
    ['the same with "none"', { ...tls, PROVIDER_TIMEOUT: '500ms', PROVIDER: 'none' }, [/without PROVIDER/]],
    ['a time limit for one', { ...tls, PROVIDER_TIMEOUT: '500ms', PROVIDER: 'loops', LOOPS_API_KEY: 'key' }, []],
    ['connections to a file', { ...tls, DATABASE_CONNECTIONS: '5' }, [/^DATABASE_CONNECTIONS has no effect/]],
    ['connections to a server', { ...tls, DATABASE_CONNECTIONS: '5', DATABASE_URL: 'postgres://me@db/list' }, []],
    ['what is the default anyway', { ...tls, PROVIDER_TIMEOUT: '8s', DATABASE_CONNECTIONS: '10' }, []],
    [
      'an address of the App API without its key',
      {
        ...tls,
        PROVIDER: 'customerio',
        CUSTOMERIO_SITE_ID: 'site',
        CUSTOMERIO_API_KEY: 'key',
        CUSTOMERIO_APP_BASE_URL: 'https://api-eu.customer.io',
      },
      [/^CUSTOMERIO_APP_BASE_URL has no effect without CUSTOMERIO_APP_KEY/],
    ],
    [
      'mails of a service without a name',
      { ...tls, SMTP_URL: 'smtps://me:secret@smtp.example.com', MAIL_FROM: 'me@example.com' },
      [/^SERVICE_NAME is not set/],
    ],
    ['several at once', { DATABASE_URL: 'sqlite::memory:', TRUST_PROXY: '::/0' }, [/plain/, /trusts every/, /lost/]],
  ]
  for (const [what, env, expected] of cases) {
    test(`${what}: ${expected.length === 0 ? 'nothing' : expected.length} to warn of`, async () => {
      const result = await readConfig(env)
      assert.ok('config' in result, JSON.stringify(result))
      const { warnings } = result.config
      assert.equal(warnings.length, expected.length, warnings.join('\n'))
      for (const [i, sentence] of expected.entries()) assert.match(warnings[i]!, sentence)
    })
  }
})
