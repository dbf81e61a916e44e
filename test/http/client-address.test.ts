import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { networkInterfaces } from 'node:os'
import { test } from 'node:test'
import { clientAddresses, clientKey, type TrustedProxies } from '../../src/http/client-address.ts'
import { clientOf } from '../harness/client.ts'
import { complaintsIn } from '../harness/program.ts'
import { send } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'

const none: TrustedProxies = { kind: 'none' }
const hops = (hops: number): TrustedProxies => ({ kind: 'hops', hops })
const inside: TrustedProxies = { kind: 'networks', networks: ['10.0.0.0/8', 'fd00::/8'] }

const PEER = '10.0.0.1'
const spoofed = Array.from({ length: 100 }, (_, i) => `192.0.2.${i}`).join(', ')

const rows: readonly [what: string, TrustedProxies, peer: string, forwarded: string | undefined, key: string][] = [
  ['IPv4 is its own key', none, '192.0.2.1', undefined, '192.0.2.1'],
  ['IPv4-mapped is IPv4', none, '::ffff:192.0.2.1', undefined, '192.0.2.1'],
  ['IPv4-mapped in hexadecimal is IPv4', none, '::FFFF:c000:201', undefined, '192.0.2.1'],
  ['a zone is dropped', none, 'fe80::1%eth0', undefined, 'fe80::/56'],
  ['IPv6 is its /56', none, '2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1::/56'],
  ['the last /64 of it is the same', none, '2001:db8:1:ff::1', undefined, '2001:db8:1::/56'],
  ['the next /56 is another client', none, '2001:db8:1:100::1', undefined, '2001:db8:1:100::/56'],
  ['nothing is trusted by default', none, PEER, '192.0.2.1', PEER],
  ['one hop: spoofed items on the left do not count', hops(1), PEER, `${spoofed}, 198.51.100.1`, '198.51.100.1'],
  ['two hops: the item before the last', hops(2), PEER, '192.0.2.66, 192.0.2.1, 10.0.0.2', '192.0.2.1'],
  ['more hops than items: the first item', hops(5), PEER, '192.0.2.1, 10.0.0.2', '192.0.2.1'],
  ['a hop, but no header', hops(1), PEER, undefined, PEER],
  ['a hop, but an empty header', hops(1), PEER, '', PEER],
  ['a trusted peer: the right-most untrusted item', inside, PEER, '1.1.1.1, 192.0.2.1, 10.9.9.9', '192.0.2.1'],
  ['a peer that is not trusted speaks for nobody', inside, '192.0.2.9', '192.0.2.1', '192.0.2.9'],
  ['all items trusted: the left-most', inside, PEER, '10.2.2.2, 10.3.3.3', '10.2.2.2'],
  ['a trusted peer as IPv4-mapped', inside, '::ffff:10.0.0.1', '192.0.2.1', '192.0.2.1'],
  ['an item with a port', inside, PEER, '1.2.3.4:5678', '1.2.3.4'],
  ['an IPv6 item in brackets with a port', inside, PEER, '[2001:db8::1]:443', '2001:db8::/56'],
  ['unknown stops the walk where it stands', inside, PEER, '192.0.2.1, unknown, 10.9.9.9', '10.9.9.9'],
  ['an empty item stops the walk', inside, PEER, '192.0.2.1,,10.9.9.9', '10.9.9.9'],
  ['tabs and spaces around items', inside, PEER, '\t192.0.2.1\t,  10.9.9.9 ', '192.0.2.1'],
  ['octal parts are no address', inside, PEER, '010.0.0.1', PEER],
  ['a network is no address', inside, PEER, '192.0.2.0/24', PEER],
]

test('C-39…C-43: who the client is', () => {
  for (const [what, proxies, peer, forwarded, key] of rows) {
    const request = { socket: { remoteAddress: peer }, headers: { 'x-forwarded-for': forwarded } }
    assert.equal(clientKey(clientAddresses(proxies).of(request as unknown as IncomingMessage)), key, what)
  }
})

/** Which of these senders share one quota of a single attempt. */
async function shares(t: Parameters<typeof startService>[0], env: Record<string, string>, senders: string[][]) {
  const { baseUrl } = await startService(t, { RATE_LIMIT: '1', ...env })
  const statuses = []
  for (const fields of senders) {
    const head = ['POST /api/waitlist HTTP/1.1', 'Host: x', 'Connection: close', ...fields]
    statuses.push((await send(baseUrl, head)).status === 429 ? 'the same' : 'another')
  }
  return statuses
}

test('C-42, C-43: X-Forwarded-For alone names the client, on one line or several, and only from a trusted proxy', async t => {
  const fields = ['X-Forwarded-For', 'X-Real-IP', 'CF-Connecting-IP', 'True-Client-IP']
  const untrusted = [[], ...fields.map(name => [`${name}: 192.0.2.1`]), ['Forwarded: for=192.0.2.1']]
  assert.deepEqual(await shares(t, {}, untrusted), ['another', ...fields.map(() => 'the same'), 'the same'])
  const senders = [
    ['X-Forwarded-For: 192.0.2.1'],
    ['X-Forwarded-For: 198.51.100.99', 'X-Forwarded-For: 192.0.2.1:4711'],
    ['X-Forwarded-For: 192.0.2.1', 'X-Forwarded-For: 192.0.2.2'],
    ['X-Real-IP: 192.0.2.77', 'Forwarded: for=192.0.2.78'],
    ['X-Forwarded-For: unknown'],
  ]
  for (const TRUST_PROXY of ['1', '127.0.0.0/8']) {
    const expected = ['another', 'the same', 'another', 'another', 'the same']
    assert.deepEqual(await shares(t, { TRUST_PROXY }, senders), expected, TRUST_PROXY)
  }
})

const hasIpv6 = Object.values(networkInterfaces()).some(list => list?.some(({ address }) => address === '::1'))

test('C-39: on a socket for both families an IPv4 client is its IPv4 address', {
  skip: hasIpv6 ? false : 'this machine has no IPv6',
}, async t => {
  const { baseUrl } = await startService(t, { HOST: '::', TRUST_PROXY: '127.0.0.1/32', RATE_LIMIT: '1' })
  const client = await clientOf({ baseUrl: baseUrl.replace('localhost', '127.0.0.1') })
  for (const visitor of ['192.0.2.1', '192.0.2.2']) {
    const { status } = await client.signUp('{}', { 'x-forwarded-for': visitor })
    assert.equal(status, 400, 'the mapped peer is trusted, so each is a client of its own')
  }
})

test('C-42: a proxy that is not trusted is warned of once, without an address', async t => {
  const FORWARDED = 'X-Forwarded-For: 192.0.2.1'
  for (const [TRUST_PROXY, headers, expected] of [
    ['', [FORWARDED], 1],
    ['10.0.0.0/8', [FORWARDED], 1],
    ['', [], 0],
    ['1', [FORWARDED], 0],
  ] as const) {
    const { baseUrl, logged } = await startService(t, { TRUST_PROXY })
    const head = ['POST /api/waitlist HTTP/1.1', 'Host: x', 'Connection: close', ...headers]
    for (let i = 0; i < 3; i++) await send(baseUrl, head)
    const warnings = complaintsIn(logged).map(({ msg }) => String(msg))
    assert.equal(warnings.length, expected, `${TRUST_PROXY} ${warnings}`)
    for (const each of warnings) assert.match(each, /^X-Forwarded-For was ignored/)
    assert.doesNotMatch(JSON.stringify(logged), /192\.0\.2/)
  }
})
