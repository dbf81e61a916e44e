import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { kinds, members, SECRET, SITE_KEY } from '../challenges/siteverify.fake.ts'
import { clientOf } from '../harness/client.ts'
import { startService, wholeFile } from '../harness/service.ts'

const MESSAGES_FILE = fileURLToPath(new URL('../../examples/messages/messages.json', import.meta.url))
const { request, signUp } = await clientOf(await startService(wholeFile))

/** The settings that a service puts before the script. */
async function settingsOf(service: { readonly request: typeof request }) {
  const { text } = await service.request('/form.js')
  return JSON.parse(/^const FORM = (.*)\n/.exec(text)![1]!)
}

test('the form is one small script that any page may run; it is kept for minutes, and has a tag', async () => {
  for (const path of ['/form.js', '/form-challenge.js']) {
    const { status, headers, text } = await request(path)
    assert.equal(status, 200)
    assert.ok(text.length <= 12_288, `${path}: ${text.length} bytes`)
    assert.equal(headers.get('cache-control'), 'public, max-age=300, stale-while-revalidate=86400')
    assert.equal(headers.get('content-type'), 'text/javascript; charset=utf-8')
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.equal(headers.get('cross-origin-resource-policy'), 'cross-origin')
    const again = await request(path, { headers: { 'if-none-match': headers.get('etag')! } })
    assert.deepEqual([again.status, again.text], [304, ''])
  }
})

test('it takes the email addresses that the service takes', async () => {
  const { email } = await settingsOf({ request })
  const shape = new RegExp(`^${email}$`)
  for (const address of 'a@b.cc a@b a.@b.cc a..b@c.dd a@-b.cc a@b.1c a+b@xn--c.de'.split(' ')) {
    const { status } = await signUp({ name: 'Ada', email: address })
    assert.equal(shape.test(address), status === 200, address)
  }
})

test('it has the challenge: the member of its solution, and the widget with the site key', async t => {
  for (const kind of ['altcha', ...kinds] as const) {
    const vendor = {
      CHALLENGE_SECRET: SECRET,
      CHALLENGE_URL: `https://verifier.example.com/${SITE_KEY}/siteverify`,
      ...(kind !== 'cap' && { CHALLENGE_SITE_KEY: SITE_KEY }),
    }
    const env = { CHALLENGE: kind, ...(kind !== 'altcha' && vendor) }
    const { challenge } = await settingsOf(await clientOf(await startService(t, env)))
    if (kind === 'altcha') assert.deepEqual(challenge, { member: 'altcha', widget: null })
    else {
      assert.equal(challenge.member, members[kind])
      const key = kind === 'cap' ? `https://verifier.example.com/${SITE_KEY}/` : SITE_KEY
      assert.ok(Object.values(challenge.widget.attributes).includes(key), kind)
    }
  }
})

test('it has every language of MESSAGES_FILE', async t => {
  const { languages } = await settingsOf(await clientOf(await startService(t, { MESSAGES_FILE })))
  assert.deepEqual(Object.keys(languages), ['en', 'de', 'fr', 'es', 'pt', 'ja', 'ar'])
  assert.deepEqual([languages.ar.tag, languages.ar.dir, languages.de.dir], ['ar', 'rtl', 'ltr'])
  assert.equal(languages.de.words['name is required'], 'Bitte gib deinen Namen ein.')
  assert.equal(languages.de.words.join, 'Auf die Warteliste setzen')
})
