import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { checkAll } from '../../src/app/checks.ts'
import { readConfig } from '../../src/config/config.ts'
import { temporaryFolder } from '../harness/folder.ts'

/** What `check` says of these lists. */
async function told(t: TestContext, blocked: string, allowed?: string): Promise<string> {
  const folder = temporaryFolder(t)
  const env: Record<string, string> = {
    DATABASE_URL: `sqlite:${join(folder, 'waitlist.db')}`,
    BLOCKED_DOMAINS_FILE: join(folder, 'blocked.txt'),
  }
  writeFileSync(env.BLOCKED_DOMAINS_FILE!, blocked)
  if (allowed !== undefined) {
    env.ALLOWED_DOMAINS_FILE = join(folder, 'allowed.txt')
    writeFileSync(env.ALLOWED_DOMAINS_FILE, allowed)
  }
  const read = await readConfig(env)
  assert.ok('config' in read)
  const { is, why } = (await checkAll(read.config)).find(({ what }) => what === 'email domains')!
  return `${is}: ${why.replaceAll(`${folder}/`, '')}`
}

test('check counts the domains that are blocked and allowed', async t => {
  const many = Array.from({ length: 1_200 }, (_, i) => `d${i}.example\n`).join('')
  assert.equal(await told(t, 'a.example'), 'ok: 1 domain is blocked')
  assert.equal(await told(t, many, 'a.example'), 'ok: 1,200 domains are blocked, 1 domain is allowed')
  assert.equal(await told(t, '*', 'a.example\nb.example'), 'ok: every domain is blocked, 2 domains are allowed')
})

test('check notes lists that block nothing, or everybody, and names the file and line that is wrong', async t => {
  assert.equal(await told(t, '# none\n'), 'note: BLOCKED_DOMAINS_FILE has no domains: nothing is blocked.')
  assert.equal(await told(t, '*'), 'note: BLOCKED_DOMAINS_FILE blocks every domain: nobody can sign up.')
  assert.equal(await told(t, '*', ''), 'note: BLOCKED_DOMAINS_FILE blocks every domain: nobody can sign up.')
  assert.equal(await told(t, 'a.example', ''), 'note: ALLOWED_DOMAINS_FILE has no domains: there are no exceptions.')
  assert.equal(
    await told(t, 'a.example\nb', ''),
    'wrong: BLOCKED_DOMAINS_FILE cannot be used: blocked.txt, line 2: not a domain such as example.com or *.example.com',
  )
})
