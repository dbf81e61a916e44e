import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run } from '../harness/command.ts'
import { contactsIn, sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { noTerminal, runProgram, spawnOnTerminal, until } from '../harness/program.ts'
import { say, startReceiver } from '../harness/receiver.ts'
import { storeAt } from '../harness/store.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'
import { signup } from '../store/place.ts'

const remove = (t: TestContext, cwd: string, args: readonly string[], env: Record<string, string> = {}) =>
  run(t, cwd, ['remove', ...args], env)

/** A folder with `data/waitlist.db`, where the program looks by default. Ada's webhook was told. */
async function listed(t: TestContext) {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const destinations = ['webhook', 'crm']
  const store = await storeAt(path, { destinations })
  await store.admit(signup('Ada', 'ada@example.com'))
  const [webhook] = await store.claim('webhook', 1)
  await store.settle(webhook!, { is: 'delivered' })
  await store.claim('crm', 1)
  await store.close()
  return { cwd, emails: () => contactsIn(path).map(({ email }) => email), path }
}

/** A provider that does not answer. */
const loops = { PROVIDER: 'loops', LOOPS_API_KEY: 'k', LOOPS_BASE_URL: 'http://127.0.0.1:9/api' }

describe('waitlist remove', { concurrency: true }, () => {
  test('--yes erases, and says who knows of them; a second time it is not on the list', async t => {
    const { cwd, emails } = await listed(t)
    const { code, stdout, stderr } = await remove(t, cwd, ['--yes', 'ADA@example.com'])
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout, /^Erased: ADA@example\.com, listed, who signed up \d{4}-\d\d-\d\dT\S+Z\.\n/)
    assert.match(stdout, /\nDelivered before, and not erased there: webhook\.\nAn attempt is in flight, .*: crm\.\n$/)
    assert.deepEqual(emails(), [])
    const again = await remove(t, cwd, ['--yes', 'ada@example.com'])
    assert.deepEqual(again, { code: 1, stdout: '', stderr: 'waitlist: ada@example.com is not on the list.\n' })
  })

  test('it asks first, and anything but yes is a no; without a terminal it is misused', async t => {
    const { cwd, emails } = await listed(t)
    const { code, stdout, stderr } = await remove(t, cwd, ['ada@example.com'])
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^waitlist: There is no terminal to ask on; --yes/)
    if (noTerminal) return
    const answered = async (answer: string) => {
      const remove = spawnOnTerminal(t, {}, { cwd, args: ['remove', 'ada@example.com'] })
      remove.process.stdin!.end(answer)
      return { status: await remove.exited, stdout: remove.stdout() }
    }
    const no = await answered('yesterday\n')
    assert.equal(no.status, 1)
    assert.match(no.stdout, /Erase ada@example\.com, listed, who signed up \S+Z\? \[y\/N\] .*nothing was done/s)
    assert.deepEqual(emails(), ['ada@example.com'])
    const yes = await answered('y\n')
    assert.equal(yes.status, 0, yes.stdout)
    assert.deepEqual(emails(), [])
  })

  test('at the provider: it keeps what it was given, unless it is asked; if that fails, the next call tries again', async t => {
    const { cwd, emails } = await listed(t)
    const none = await remove(t, cwd, ['--yes', '--at-provider', 'ada@example.com'])
    assert.deepEqual([none.code, none.stderr], [2, 'waitlist: --at-provider: no provider is set.\n'])
    assert.deepEqual(emails(), ['ada@example.com'])
    const kept = await remove(t, cwd, ['--yes', 'ada@example.com'], loops)
    assert.equal(kept.code, 0)
    assert.match(kept.stdout, /\nLoops keeps what it was given\. .*: waitlist remove --at-provider ada@example\.com\n$/)
    for (let time = 0; time < 2; time++) {
      const failed = await remove(t, cwd, ['--yes', '--at-provider', 'ada@example.com'], loops)
      assert.equal(failed.code, 1)
      assert.match(failed.stderr, /ada@example\.com is not on the list\..*Loops has not removed them: /s)
    }
  })

  test('while a visitor waits for the provider: nothing comes back, and what the visitor reads is true', async t => {
    const fake = loopsFake()
    let answer: (() => void) | undefined
    const vendor = await startReceiver(t, received => {
      const said = fake.answer(received)
      if (received.path !== '/api/v1/contacts/create' || answer !== undefined) return said
      return response => {
        answer = () => say(said)(response, received)
      }
    })
    const cwd = temporaryFolder(t)
    const env = {
      HOST: '127.0.0.1',
      PORT: '0',
      PROVIDER: 'loops',
      ...loopsSettings(vendor.url),
    }
    const service = await runProgram(t, env, { cwd })
    const visitor = visit(service, 'ada@example.com')
    await until(() => answer !== undefined)
    const { code, stdout } = await remove(t, cwd, ['--yes', 'ada@example.com'])
    assert.equal(code, 0)
    assert.match(stdout, /\nAn attempt is in flight, and may still arrive: loops\.\n/)
    answer?.()
    assert.deepEqual(await visitor, {
      status: 500,
      error: 'the waitlist service is temporarily unavailable, please try again',
    })
    const sql = sqlOn(join(cwd, 'data', 'waitlist.db'))
    assert.deepEqual(await sql('select 1 from contact union all select 1 from delivery'), [])
    // By themselves.
    assert.equal((await visit(service, 'ada@example.com'))?.status, 200)
    assert.equal((await sql('select 1 from contact')).length, 1)
  })
})
