import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { isSecret } from '../../src/destinations/secret.ts'
import { isMetadata, isPrivate } from '../../src/outbound/addresses.ts'

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

  test('plain HTTP stays at home when the host says so', () => {
    const local = [
      'localhost',
      'localhost.',
      'LOCALHOST',
      'n8n',
      'n8n:5678',
      'printer.local',
      'hooks.svc.internal',
      'a.localhost',
      '10.0.0.1',
      '10.255.255.255',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.2',
      '127.0.0.1',
      '127.8.8.8',
      '169.254.1.1',
      '[::1]',
      '[fc00::1]',
      '[fdff::1]',
      '[fe80::1]',
      '[febf::1]',
      '[::ffff:192.168.1.2]',
      '0x7f.1',
    ]
    for (const host of local) assert.equal(isPrivate(`http://${host}/hook?x=1`), true, host)
  })

  test('and not when it leads outside, or pretends', () => {
    const outside = [
      'example.com',
      'localhost.example.com',
      'local.example',
      'internal.example.com',
      'a.examplelocal',
      '9.255.255.255',
      '11.0.0.1',
      '172.15.255.255',
      '172.32.0.1',
      '192.169.0.1',
      '128.0.0.1',
      '169.253.1.1',
      '8.8.8.8',
      '[2001:db8::1]',
      '[fbff::1]',
      '[fec0::1]',
      '[::ffff:8.8.8.8]',
      '10.0.0.1.example.com',
    ]
    for (const host of outside) assert.equal(isPrivate(`http://${host}/hook`), false, host)
    assert.equal(isPrivate('http://localhost@example.com/hook'), false)
    assert.equal(isPrivate('http://example.com/localhost'), false)
  })

  test('link-local addresses and metadata services are known in every spelling', () => {
    const metadata = [
      '169.254.169.254',
      '169.254.0.1',
      '2852039166',
      '0xa9.0xfe.0251.254',
      '[::ffff:169.254.169.254]',
      '[::ffff:a9fe:a9fe]',
      '[fe80::1]',
      '[febf::1]',
      '[fd00:ec2::254]',
      '[FD00:0EC2:0:0::254]',
      '[fd20:ce::254]',
      '100.100.100.200',
      'metadata.google.internal',
      'Metadata.Google.Internal.',
      'metadata.goog',
    ]
    for (const host of metadata) assert.equal(isMetadata(`http://${host}/hook?x=1`), true, host)
    const receivers = [
      'localhost',
      'n8n:5678',
      'hooks.svc.internal',
      '127.0.0.1',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.1.2',
      '169.253.255.255',
      '169.255.0.0',
      '100.64.0.1',
      '[::1]',
      '[fd00::1]',
      '[fd00:ec2::253]',
      '[fec0::1]',
      'metadata.google.internal.example.com',
      'example.com',
    ]
    for (const host of receivers) assert.equal(isMetadata(`http://${host}/hook`), false, host)
    assert.equal(isMetadata('http://example.com/169.254.169.254'), false)
  })
})
