import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { kinds, members, SECRET, SITE_KEY } from '../challenges/siteverify.fake.ts'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const client = await clientOf(await startService(wholeFile))

/** The settings that the service puts before the script. */
const settingsIn = (script: string) => JSON.parse(/^const FORM = (.*)\n/.exec(script)![1]!)

test('the form is one small script that any page may run; it is kept for minutes, and has a tag', async () => {
  for (const path of ['/form.js', '/form-challenge.js']) {
    const { status, headers, text } = await client.request(path)
    assert.equal(status, 200)
    assert.ok(text.length <= 12_288, `${path}: ${text.length} bytes`)
    const { etag, ...others } = Object.fromEntries(headers)
    assert.equal(others['cache-control'], 'public, max-age=300, stale-while-revalidate=86400')
    assert.equal(others['content-type'], 'text/javascript; charset=utf-8')
    assert.equal(others['access-control-allow-origin'], '*')
    assert.equal(others['cross-origin-resource-policy'], 'cross-origin')
    const again = await client.request(path, { headers: { 'if-none-match': etag! } })
    assert.deepEqual([again.status, again.text], [304, ''])
    assert.equal((await client.request(path, { method: 'OPTIONS' })).headers.get('allow'), 'GET, HEAD, OPTIONS')
  }
})

test('it takes the email addresses that the service takes, and says so in the same words', async () => {
  const { email, languages } = settingsIn((await client.request('/form.js')).text)
  assert.deepEqual(Object.keys(languages), ['en'])
  const shape = new RegExp(`^${email}$`)
  for (const address of 'a@b.cc a@b a.@b.cc a..b@c.dd a@-b.cc a@b.1c a+b@xn--c.de'.split(' ')) {
    const { status, json } = await client.signUp({ name: 'Ada', email: address })
    assert.equal(shape.test(address), status === 200, address)
    if (status === 400) assert.equal(json.error, 'email must be a valid email address')
  }
})

test('it has the challenge: the member of its solution, and the widget', async t => {
  const challengeOf = async (env: Record<string, string>) =>
    settingsIn((await (await clientOf(await startService(t, env))).request('/form.js')).text).challenge
  assert.deepEqual(await challengeOf({ CHALLENGE: 'altcha' }), { member: 'altcha', widget: null })
  for (const kind of kinds) {
    const url = `https://verifier.example.com/${SITE_KEY}/siteverify`
    const key = kind === 'cap' ? {} : { CHALLENGE_SITE_KEY: SITE_KEY }
    const env = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET, CHALLENGE_URL: url, ...key }
    const { member, widget } = await challengeOf(env)
    assert.equal(member, members[kind])
    assert.match(widget.script, /^https:/)
    const keys = Object.values(widget.attributes)
    assert.ok(keys.includes(kind === 'cap' ? `https://verifier.example.com/${SITE_KEY}/` : SITE_KEY), kind)
  }
})

test('it has every language of MESSAGES_FILE; what one lacks is in English', async t => {
  const MESSAGES_FILE = fileURLToPath(new URL('../../examples/messages/messages.json', import.meta.url))
  const { request } = await clientOf(await startService(t, { MESSAGES_FILE }))
  const { languages } = settingsIn((await request('/form.js')).text)
  assert.deepEqual(Object.keys(languages), ['en', 'de', 'fr', 'es', 'pt', 'ja', 'ar'])
  const { tag, dir, words } = languages.ar
  assert.deepEqual([tag, dir, languages.de.dir], ['ar', 'rtl', 'ltr'])
  assert.deepEqual(Object.keys(words).slice(0, 14), Object.keys(languages.en.words))
  assert.equal(languages.de.words['name is required'], 'Bitte gib deinen Namen ein.')
})
