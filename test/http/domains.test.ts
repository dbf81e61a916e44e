import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import * as refusals from '../../src/http/wire/refusals.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startService } from '../harness/service.ts'

const SENTENCE = refusals.domainNotAccepted.error
const BASE = 'https://waitlist.example.org'
const blocked = { name: 'Ada', email: 'ada@Mail.Trash.example' }

async function open(t: TestContext, more: Record<string, string> = {}) {
  const file = join(temporaryFolder(t), 'blocked.txt')
  writeFileSync(file, '# throw-away\n*.trash.example\n')
  const service = await startService(t, { BLOCKED_DOMAINS_FILE: file, ...more })
  return { ...service, ...(await clientOf({ baseUrl: service.origin })) }
}

test('a blocked domain is refused, whatever its case, and nothing is stored', async t => {
  const { signUp, databasePath } = await open(t)
  assertRefused(await signUp(blocked), 400, 'this email domain is not accepted')
  assert.equal((await signUp({ name: 'Ada', email: 'ada@trash.example' })).status, 200)
  assert.deepEqual(
    contactsIn(databasePath).map(({ email }) => email),
    ['ada@trash.example'],
  )
})

test('it is looked at after name and email, and before the challenge', async t => {
  const { signUp } = await open(t, { CHALLENGE: 'altcha' })
  assertRefused(await signUp({ ...blocked, name: '' }), 400, 'name is required')
  assertRefused(await signUp({ ...blocked, email: '@mail.trash.example' }), 400, 'email must be a valid email address')
  assertRefused(await signUp(blocked), 400, SENTENCE)
  assertRefused(await signUp({ name: 'Ada', email: 'ada@example.com' }), 400, refusals.challengeMissing.error)
})

test('it counts as an attempt', async t => {
  const { signUp } = await open(t, { RATE_LIMIT: '2' })
  assertRefused(await signUp(blocked), 400, SENTENCE)
  assertRefused(await signUp(blocked), 400, SENTENCE)
  assertRefused(await signUp({ name: 'Ada', email: 'ada@example.com' }), 429)
})

test('the documents name the sentence while there is a list, and are otherwise what they are without it', async t => {
  const documentsOf = async (service: { origin: string }) =>
    Promise.all(
      ['/api/openapi.json', '/docs/api'].map(async path =>
        (await fetch(service.origin + path, { headers: { accept: 'text/markdown' } })).text(),
      ),
    )
  const settings = { BASE_URL: BASE, TRUST_PROXY: '1' }
  const [listed, page] = await documentsOf(await open(t, settings))
  const [unlisted, plain] = await documentsOf(await startService(t, settings))
  assert.ok(page!.includes(SENTENCE) && listed!.includes(SENTENCE))
  for (const text of [unlisted!, plain!]) assert.ok(!text.includes(SENTENCE))

  const document = JSON.parse(listed!)
  const { examples } = document.paths['/api/waitlist'].post.responses[400].content['application/json']
  assert.deepEqual(examples.domain, { value: { error: SENTENCE } })
  delete examples.domain
  assert.equal(JSON.stringify(document), unlisted)
  const line = `  - “${SENTENCE}”\n`
  assert.equal(page!.replace(line, ''), plain)
})
