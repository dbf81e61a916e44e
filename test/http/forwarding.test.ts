import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientAddress, type ForwardingSign, type TrustedProxies } from '../../src/http/routes/client-address.ts'
import { clientOf } from '../harness/client.ts'
import { complaintsIn } from '../harness/program.ts'
import { send } from '../harness/raw.ts'
import { startService } from '../harness/service.ts'

const none: TrustedProxies = { kind: 'none' }
const hops = (hops: number): TrustedProxies => ({ kind: 'hops', hops })
const networks = (...networks: string[]): TrustedProxies => ({ kind: 'networks', networks })

const LOCAL = '127.0.0.1'
const PUBLIC = '203.0.113.9'
const here = networks('127.0.0.1/32')

const rows: readonly [
  what: string,
  proxies: TrustedProxies,
  peer: string,
  forwarded: string | undefined,
  sign: ForwardingSign | null,
][] = [
  ['no proxy', none, PUBLIC, undefined, null],
  ['a visitor without a proxy who forges the field', none, PUBLIC, '192.0.2.1', null],
  ['an empty field', none, LOCAL, '', null],
  ['a proxy here', none, LOCAL, '192.0.2.1', 'not trusted'],
  ['a proxy on ::1', none, '::1', '192.0.2.1', 'not trusted'],
  ['a proxy in a private network', none, '10.0.0.9', '192.0.2.1', 'not trusted'],
  ['one in fd00::/8', none, 'fd00::9', '192.0.2.1', 'not trusted'],
  ['one of a hosting platform', none, '100.64.0.3', '192.0.2.1', 'not trusted'],
  ['a proxy beside those that are trusted', here, '10.0.0.9', '192.0.2.1', 'not trusted'],
  ['a visitor past those that are trusted', here, PUBLIC, '192.0.2.1', null],

  ['one proxy', hops(1), LOCAL, PUBLIC, null],
  ['one proxy, by its network', here, LOCAL, PUBLIC, null],
  ['one proxy, and a visitor who forges the field', hops(1), LOCAL, `10.0.0.1, 192.0.2.1, ${PUBLIC}`, null],
  ['one proxy, and a visitor in a private network', hops(1), LOCAL, '192.168.1.7', null],
  ['one proxy that does not add the field', hops(1), LOCAL, undefined, 'no address'],
  ['one proxy that adds it empty', hops(1), LOCAL, '', 'no address'],
  ['one proxy that does not know', hops(1), LOCAL, 'unknown', 'no address'],
  ['one proxy that listens on a Unix socket', here, LOCAL, `${PUBLIC}, unix:`, 'no address'],

  ['two proxies', hops(2), LOCAL, `${PUBLIC}, 10.0.0.9`, null],
  ['two proxies, by their networks', networks('127.0.0.1/32', '10.0.0.9/32'), LOCAL, `${PUBLIC}, 10.0.0.9`, null],
  ['two proxies of which one is counted', hops(1), LOCAL, `${PUBLIC}, 10.0.0.9`, 'one more'],
  ['two proxies of which one is named', here, LOCAL, `${PUBLIC}, 10.0.0.9`, 'one more'],
  ['one proxy that is counted twice', hops(2), LOCAL, PUBLIC, 'too few'],
  ['two of which one adds nothing', hops(2), LOCAL, '10.0.0.9', 'too few'],
  // What cannot be noticed.
  ['a public proxy that is not counted', hops(1), LOCAL, `${PUBLIC}, 198.51.100.7`, null],
]

for (const [what, proxies, peer, forwarded, sign] of rows) {
  test(`C-42: ${what}: ${sign === null ? 'no sign' : `"${sign}"`}`, () => {
    const signs: ForwardingSign[] = []
    const key = clientAddress(proxies, sign => signs.push(sign))(peer, forwarded)
    assert.deepEqual(signs, sign === null ? [] : [sign])
    assert.equal(key, clientAddress(proxies)(peer, forwarded), 'the client is the same, noticed or not')
  })
}

const signUpHead = (...fields: string[]) => ['POST /api/waitlist HTTP/1.1', 'Host: x', 'Connection: close', ...fields]

const scenes: readonly [TRUST_PROXY: string, fields: string[], sentence: RegExp | null][] = [
  ['', [], null],
  [
    '',
    ['X-Forwarded-For: 192.0.2.1'],
    /^A request came from a private address with X-Forwarded-For, which was ignored/,
  ],
  ['127.0.0.1/32', ['X-Forwarded-For: 192.0.2.1'], null],
  ['1', ['X-Forwarded-For: 198.51.100.1, 10.0.0.1', 'X-Forwarded-For: 192.0.2.1'], null],
  ['1', [], /^A request came without an address in X-Forwarded-For/],
  ['127.0.0.1/32', ['X-Real-IP: 192.0.2.1', 'Forwarded: for=192.0.2.1'], /^A request came without an address/],
  ['2', ['X-Forwarded-For: 192.0.2.1'], /^X-Forwarded-For of a request names fewer addresses than TRUST_PROXY counts/],
  ['1', ['X-Forwarded-For: 192.0.2.1, 10.0.0.9'], /^X-Forwarded-For of a request names a visitor before a private/],
]

for (const [TRUST_PROXY, fields, sentence] of scenes) {
  const what = `TRUST_PROXY=${TRUST_PROXY} and ${fields.join('; ') || 'no field'}`
  test(`C-42: ${what}: ${sentence === null ? 'no warning' : 'one warning, without an address'}`, async t => {
    const { baseUrl, logged } = await startService(t, { TRUST_PROXY })
    for (let i = 0; i < 3; i++) await send(baseUrl, signUpHead(...fields))
    const warnings = complaintsIn(logged).map(({ msg }) => String(msg))
    assert.equal(warnings.length, sentence === null ? 0 : 1, String(warnings))
    if (sentence !== null) assert.match(warnings[0]!, sentence)
    assert.doesNotMatch(JSON.stringify(logged), /192\.0\.2|198\.51\.100|10\.0\.0\.[19]/)
  })
}

test('health checks, documents and what has no route come without the field, and nobody is warned', async t => {
  const { baseUrl, logged } = await startService(t, { TRUST_PROXY: '1' })
  const client = await clientOf({ baseUrl })
  for (const path of ['/api/health', '/api/waitlist', '/', '/nowhere']) await client.request(path)
  await client.request('/api/waitlist', { method: 'OPTIONS' })
  assert.deepEqual(complaintsIn(logged), [])
})
