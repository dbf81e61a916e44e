import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readConfig } from '../src/config.ts'

type Environment = Record<string, string>

const secret = `whsec_${Buffer.alloc(24, 'x').toString('base64')}`
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
    ['PostgreSQL next door', { ...tls, DATABASE_URL: 'postgres://me@db/list' }, []],
    ['PostgreSQL far away, in the clear', { ...tls, DATABASE_URL: 'postgres://me@db.example.com/list' }, [/sslmode/]],
    ['the same with TLS', { ...tls, DATABASE_URL: 'postgres://me@db.example.com/list?sslmode=verify-full' }, []],
    ['several at once', { DATABASE_URL: 'sqlite::memory:', TRUST_PROXY: '::/0' }, [/plain/, /trusts every/, /lost/]],
  ]
  for (const [what, env, expected] of cases) {
    test(`${what}: ${expected.length === 0 ? 'nothing' : expected.length} to warn of`, () => {
      const result = readConfig(env)
      assert.ok('config' in result, JSON.stringify(result))
      const { warnings } = result.config
      assert.equal(warnings.length, expected.length, warnings.join('\n'))
      for (const [i, sentence] of expected.entries()) assert.match(warnings[i]!, sentence)
    })
  }
})
