import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { run } from '../harness/command.ts'
import { contactsIn, sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const holds = { above: { count: 0, time: 3_600_000 }, suspicious: false }

/** A folder with `data/waitlist.db`: Ada is listed, the others are held. */
async function scene(t: TestContext) {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const before = await storeAt(path)
  await before.admit(signup('Ada', 'ada@example.com'))
  await before.close()
  const store = await storeAt(path, { holds })
  for (const who of ['Bob', 'Cyd', 'Dot', 'Eve']) await store.admit(signup(who, `${who}@spam.example`))
  await store.close()
  const sql = sqlOn(path)
  await sql("update contact set reason = 'same-mailbox', created_at = 0 where name = 'Bob'")
  return { cwd, sql, states: () => contactsIn(path).map(({ email, state }) => `${email.slice(0, 3)} ${state}`) }
}

test('release: those who are named, and who is not held is named; with a provider they are pending, for its hand-over', async t => {
  const { cwd, states, sql } = await scene(t)
  const some = await run(t, cwd, ['release', 'DOT@spam.example', 'ada@example.com'])
  assert.deepEqual(some, {
    code: 1,
    stdout: '1 signup was released.\n',
    stderr: 'waitlist: not all could be released:\n  - ada@example.com is not held.\n',
  })
  const env = { PROVIDER: 'loops', LOOPS_API_KEY: 'k' }
  const old = await run(t, cwd, ['release', '--reason', 'same-mailbox', '--until', '1d'], env)
  assert.deepEqual(old, {
    code: 0,
    stdout: '1 signup was released.\nThe running service hands them over to Loops.\n',
    stderr: '',
  })
  assert.deepEqual(states(), ['ada listed', 'Bob pending', 'Cyd held', 'Dot listed', 'Eve held'])
  const deliveries = await sql('select destination from delivery')
  assert.deepEqual(
    deliveries.map(({ destination }) => destination),
    ['loops'],
  )
  assert.equal((await run(t, cwd, ['release', '--all'])).stdout, '2 signups were released.\n')
  const nobody = await run(t, cwd, ['release', '--all'])
  assert.deepEqual(nobody, { code: 1, stdout: '', stderr: 'waitlist: nothing was found.\n' })
})

test('discard: --yes deletes them; without it and a terminal, or without who is meant, nothing happens', async t => {
  const { cwd, states } = await scene(t)
  for (const args of [
    ['discard', '--all'],
    ['discard', '--yes'],
    ['discard', '--yes', '--all', '--until', '1h'],
    ['release', 'bob'],
  ]) {
    const { code, stdout, stderr } = await run(t, cwd, args)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, /^waitlist: /)
  }
  assert.deepEqual(states(), ['ada listed', 'Bob held', 'Cyd held', 'Dot held', 'Eve held'])
  const one = await run(t, cwd, ['discard', '--yes', 'eve@spam.example'])
  assert.deepEqual(one, { code: 0, stdout: '1 signup was discarded.\n', stderr: '' })
  assert.equal((await run(t, cwd, ['discard', '--yes', '--search', 'CYD'])).code, 0)
  assert.equal((await run(t, cwd, ['discard', '--yes', '--all'])).stdout, '2 signups were discarded.\n')
  assert.deepEqual(states(), ['ada listed'])
})
