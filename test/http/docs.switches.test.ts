/** What the documents say while a challenge must be solved, signups may be held, or membership is not disclosed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { altcha } from '../../src/challenges/altcha.ts'
import { vendors } from '../../src/challenges/vendors.ts'
import type { Widget } from '../../src/waitlist/ports/challenge.ts'
import { kinds, members, SECRET } from '../challenges/siteverify.fake.ts'
import { clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'

const ada = { name: 'Ada', email: 'ada@example.com' }
const own = { CHALLENGE: 'altcha', CHALLENGE_RANGE: '5' }

/** Every challenge: its settings, its member and its widget. */
const challenges: readonly (readonly [env: Record<string, string>, member: string, widget: Omit<Widget, 'title'>])[] = [
  [own, 'altcha', altcha({ secret: 'x', range: 1 }).widget],
  ...kinds.map(kind => {
    const url = { CHALLENGE_URL: `https://verifier.example.com/${kind}` }
    const env = { CHALLENGE: kind, CHALLENGE_SECRET: SECRET, CORS_ORIGINS: 'https://www.example.com', ...url }
    return [env, members[kind], vendors[kind].widget] as const
  }),
]

/** All that a service says of itself. */
async function documented(t: TestContext, env: Record<string, string>) {
  const client = await clientOf(await startService(t, env))
  const as = async (accept: string) => (await client.request('/docs/api', { headers: { accept } })).text
  const [page, markdown, { json: api }] = await Promise.all([
    as('text/html'),
    as('text/markdown'),
    client.request('/api/openapi.json'),
  ])
  return { client, page, markdown, api }
}

/** The only example in this language. */
function sampleIn(markdown: string, language: string): string {
  const found = [...markdown.matchAll(new RegExp(`^\`\`\`${language}\n(.*?)\n\`\`\`$`, 'gms'))].map(([, code]) => code!)
  assert.equal(found.length, 1)
  return found[0]!
}

for (const [env, member, { script, element, reset }] of challenges) {
  test(`${env.CHALLENGE}: the form has the widget, sends what it puts there, and asks it anew after a 400`, async t => {
    const { page, markdown } = await documented(t, env)
    const form = sampleIn(markdown, 'html')
    const [markup] = form.split('</form>', 1)
    assert.ok(markup!.includes(`\n  ${element}\n  <button type="submit"`))
    assert.ok(form.indexOf(script) < form.indexOf('<script type="module">\n') && form.includes(script))
    assert.equal(form.split('body: JSON.stringify(Object.fromEntries(new FormData(form)))').length, 2)
    assert.match(form, /response\.status === 400\) \{\n.*\n {8}if \(!input\)/)
    assert.ok(form.includes(`\n        ${reset}\n`))
    if (env !== own) assert.match(page, /needs a [\w ]+ solution/, 'why a signup cannot be tried on the page')
    // Whatever the reader has to replace is named beside it.
    for (const [placeholder] of element.matchAll(/your-[\w.-]+/g))
      assert.ok(markdown.includes(`replace \`your-`), placeholder)
    assert.match(markdown, new RegExp(`its widget, as in [^\n]* \`${member}\``))
    for (const text of [page, markdown]) assert.doesNotMatch(text, /every example on this page works as it is: /i)
  })
}

const heldIn = ({ paths }: { paths: Record<string, Record<string, unknown>> }) => {
  const { post } = paths['/api/waitlist'] as { post: Any }
  return post.responses[200].content['application/json'].examples.held?.value
}
// biome-ignore lint/suspicious/noExplicitAny: the document is read as a stranger would read it
type Any = any

test('where signups may be held, the documents have the very answer of one that is', async t => {
  const { client, page, markdown, api } = await documented(t, { HOLD_ABOVE: '0' })
  const { status, json } = await client.signUp(ada)
  assert.equal(status, 200)
  assert.deepEqual(heldIn(api), json)
  assert.deepEqual(Object.keys(json), ['success', 'message', 'alreadyExisted', 'automationTriggered'])
  assert.ok(page.includes(json.message) && page.includes('id="held-signups"'))
  assert.ok(markdown.includes(JSON.stringify(json, null, 2)))
  assert.match(api.components.schemas.SignupResult.properties.contactId.description, /or if the signup is held/)
})

test('they have it with each switch that holds, and with none that does not', async t => {
  const [altchas, turnstile] = challenges.map(([env]) => env) as [Record<string, string>, Record<string, string>]
  for (const env of [{ HOLD_SUSPICIOUS: 'true' }, { HOLD_ABOVE: '9' }, turnstile, { ...altchas, HOLD_ABOVE: '9' }]) {
    const { page, markdown, api } = await documented(t, env)
    assert.ok(heldIn(api) !== undefined && page.includes('id="held-signups"') && markdown.includes('### Held signups'))
  }
  for (const env of [{}, altchas]) {
    const { page, markdown, api } = await documented(t, env)
    assert.equal(heldIn(api), undefined)
    for (const text of [page, markdown, JSON.stringify(api)]) assert.doesNotMatch(text, /\bheld\b|is recorded\./)
  }
})

test('where membership is not disclosed there is one answer, held or not', async t => {
  const { page, markdown, api } = await documented(t, { HOLD_ABOVE: '9', DISCLOSE_MEMBERSHIP: 'false' })
  const { examples } = api.paths['/api/waitlist'].post.responses[200].content['application/json']
  assert.deepEqual(examples, {
    recorded: { summary: 'Any address', value: { success: true, message: 'Your signup is recorded.' } },
  })
  for (const text of [page, markdown]) assert.doesNotMatch(text, /\bheld\b|see a duplicate/)
})

/** What kind of thing each member is: a text of so many characters, a number, or an object. */
const shapeOf = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, member]) => [name, shapeOf(member)]))
    : typeof value === 'string'
      ? value.length
      : typeof value

test('the example of a challenge looks like one that is made, and the documentation has it', async t => {
  const { client, page, markdown, api } = await documented(t, { CHALLENGE: 'altcha' })
  const { get } = api.paths['/api/challenge']
  const { value } = get.responses[200].content['application/json'].examples.challenge
  const { json } = await client.request('/api/challenge')
  assert.deepEqual(shapeOf(value), shapeOf(json))
  for (const name of ['algorithm', 'cost', 'keyLength', 'data']) {
    assert.deepEqual(value.parameters[name], json.parameters[name], name)
  }
  assert.deepEqual(Object.keys(get.responses).sort(), ['200', '429', '4XX', '500'])
  assert.ok(markdown.includes(JSON.stringify(value, null, 2)))
  for (const text of [page, markdown]) assert.ok(text.includes('and so have challenges'))
  assert.match(markdown, /too many challenges, please try again in 30 seconds/)
})
