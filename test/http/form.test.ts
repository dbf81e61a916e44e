import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request as ask, type IncomingMessage } from 'node:http'
import { describe, test } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { hashedName, integrity, sentences } from '../../src/form/script.ts'
import { kinds, members, SECRET, SITE_KEY } from '../challenges/siteverify.fake.ts'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const client = await clientOf(await startService(wholeFile))
const base = client.baseUrl

/** `fetch` decodes what it gets, so this asks without it. */
async function fetched(path: string, headers: Record<string, string> = {}, method = 'GET') {
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>()
  ask(base + path, { method, headers }, resolve).end()
  const response = await promise
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }
}

const decode = { br: brotliDecompressSync, gzip: gunzipSync } as const

describe('the script of the form', () => {
  test('has at most 6 kB, is the same in every encoding, and each encoding has its own tag', async () => {
    const plain = await fetched('/form.js')
    assert.equal(plain.headers['content-encoding'], undefined)
    const tags = new Set([plain.headers.etag])
    for (const [accepted, coding, most] of [
      ['gzip, deflate, br, zstd', 'br', 6_000],
      ['gzip;q=1.0, br;q=0', 'gzip', 7_168],
      ['*', 'br', 6_000],
    ] as const) {
      const { headers, body } = await fetched('/form.js', { 'accept-encoding': accepted })
      assert.equal(headers['content-encoding'], coding)
      assert.equal(headers.vary, 'Accept-Encoding')
      assert.ok(body.length <= most, `${coding}: ${body.length} bytes`)
      assert.deepEqual(decode[coding](body), plain.body)
      tags.add(headers.etag)
    }
    assert.equal(tags.size, 3)
    const head = await fetched('/form.js', { 'accept-encoding': 'br' }, 'HEAD')
    assert.deepEqual([head.headers['content-encoding'], head.body.length], ['br', 0])
    const again = await fetched('/form.js', { 'accept-encoding': 'br', 'if-none-match': head.headers.etag! })
    assert.deepEqual([again.status, again.headers['content-encoding'], again.body.length], [304, 'br', 0])
  })

  test('may be run by any page, is kept for minutes, and for a year under the name that has its hash', async () => {
    for (const [path, cache] of [
      ['/form.js', 'public, max-age=300, stale-while-revalidate=86400'],
      ['/form-challenge.js', 'public, max-age=300, stale-while-revalidate=86400'],
      [`/${hashedName}`, 'public, max-age=31536000, immutable'],
    ]) {
      const { status, headers } = await client.request(path!)
      const field = (name: string) => headers.get(name)
      assert.deepEqual([status, field('cache-control')], [200, cache])
      assert.equal(field('content-type'), 'text/javascript; charset=utf-8')
      assert.equal(field('access-control-allow-origin'), '*')
      assert.equal(field('cross-origin-resource-policy'), 'cross-origin')
      assert.equal(field('x-content-type-options'), 'nosniff')
      assert.equal((await client.request(path!, { method: 'OPTIONS' })).headers.get('allow'), 'GET, HEAD, OPTIONS')
    }
    assert.equal((await client.request('/form-0123456789abcdef.js')).status, 404)
  })

  test('is what the documentation pins', async () => {
    const [script, { text: docs }] = await Promise.all([
      client.request(`/${hashedName}`),
      client.request('/docs/api', { headers: { accept: 'text/markdown' } }),
    ])
    assert.equal(script.text, (await client.request('/form.js')).text)
    const [, address, hash] = /src="([^"]*form-[^"]*)" integrity="([^"]*)"/.exec(docs) ?? []
    assert.equal(address, `${base}/${hashedName}`)
    assert.equal(hash, `sha384-${createHash('sha384').update(script.text).digest('base64')}`)
    assert.equal(integrity, hash)
  })
})

describe('what the form asks of the service', () => {
  test('is its sentences alone while no challenge is asked for, and any page may read it', async () => {
    const { json, headers } = await client.request('/form.json')
    const { refusals, ...others } = json
    assert.deepEqual(others, { challenge: null, language: 'en', dir: 'ltr', sentences })
    assert.deepEqual([headers.get('vary'), headers.get('content-language')], [null, null])
    for (const [signup, field] of [
      [{ name: '\u0007', email: 'ada@example.com' }, 'name'],
      [{ name: 'Ada', email: 'ada@' }, 'email'],
    ] as const) {
      const { error } = (await client.signUp(signup)).json
      assert.deepEqual(
        refusals.filter(([start]: [string]) => error.startsWith(start)).map(([, about]: [string, string]) => about),
        [field],
      )
    }
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.equal(headers.get('cache-control'), 'public, max-age=300')
  })

  test('has the challenge: how it is solved, and the member of its solution', async t => {
    const challengeOf = async (env: Record<string, string>) =>
      (await (await clientOf(await startService(t, env))).request('/form.json')).json.challenge
    assert.deepEqual(await challengeOf({ CHALLENGE: 'altcha' }), { member: 'altcha', widget: null })
    for (const kind of kinds) {
      const env = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET }
      const url = { CHALLENGE_URL: `https://verifier.example.com/${SITE_KEY}/siteverify` }
      const key = kind === 'cap' ? {} : { CHALLENGE_SITE_KEY: SITE_KEY }
      const { member, widget } = await challengeOf({ ...env, ...url, ...key })
      assert.equal(member, members[kind])
      assert.match(widget.script, /^https:/)
      const keys = Object.values(widget.attributes)
      assert.ok(keys.includes(kind === 'cap' ? `https://verifier.example.com/${SITE_KEY}/` : SITE_KEY), kind)
    }
    const pages = { CHALLENGE_SITE_KEY: 'https://cap.example.com/d9/' }
    const env = { CHALLENGE: 'cap', CHALLENGE_SECRET: SECRET, CHALLENGE_URL: 'http://cap:3000/d9' }
    assert.deepEqual((await challengeOf({ ...env, ...pages })).widget.attributes, {
      'data-cap-api-endpoint': 'https://cap.example.com/d9/',
    })
  })
})
