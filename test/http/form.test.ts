import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sentences } from '../../src/form/script.ts'
import { kinds, members, SECRET, SITE_KEY } from '../challenges/siteverify.fake.ts'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const client = await clientOf(await startService(wholeFile))

describe('the script of the form', () => {
  test('may be run by any page, is kept for minutes, and has a tag', async () => {
    for (const path of ['/form.js', '/form-challenge.js']) {
      const { status, headers } = await client.request(path)
      const field = (name: string) => headers.get(name)
      assert.deepEqual([status, field('cache-control')], [200, 'public, max-age=300, stale-while-revalidate=86400'])
      assert.equal(field('content-type'), 'text/javascript; charset=utf-8')
      assert.equal(field('access-control-allow-origin'), '*')
      assert.equal(field('cross-origin-resource-policy'), 'cross-origin')
      assert.equal(field('x-content-type-options'), 'nosniff')
      const again = await client.request(path, { headers: { 'if-none-match': field('etag')! } })
      assert.deepEqual([again.status, again.text], [304, ''])
      assert.equal((await client.request(path, { method: 'OPTIONS' })).headers.get('allow'), 'GET, HEAD, OPTIONS')
    }
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
