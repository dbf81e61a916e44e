import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { type Program, runProgram, spawnProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { noStrace } from '../harness/strace.ts'

const skip = noStrace()

const env = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', DATABASE_URL: 'sqlite:waitlist.db' }

/** One after the other, so that each is a transaction of its own. Resolves with the acknowledged addresses. */
async function signUpUntilItFails({ baseUrl }: Program, most: number, who = 'visitor'): Promise<string[]> {
  const acknowledged: string[] = []
  for (let i = 0; i < most; i++) {
    const email = `${who}-${i}@example.com`
    const answer = await fetch(`${baseUrl}/api/waitlist`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'V'.repeat(100), email }),
    }).catch(() => null)
    if (answer?.status !== 200) break
    await answer.text()
    acknowledged.push(email)
  }
  return acknowledged
}

async function restartFindsAll(t: Parameters<typeof runProgram>[0], cwd: string, emails: string[]): Promise<void> {
  const again = await runProgram(t, { ...env, SHUTDOWN_DELAY: '0' }, { cwd })
  const stored = contactsIn(join(cwd, 'waitlist.db'))
  const events = new Map(stored.map(contact => [contact.email, contact.events]))
  assert.deepEqual(
    emails.map(email => [email, events.get(email)]),
    emails.map(email => [email, 1]),
  )
  assert.ok(stored.every(contact => contact.events === 1))
  assert.equal((await fetch(`${again.baseUrl}/api/health`)).status, 200)
}

describe('what is acknowledged is synced', { concurrency: true }, () => {
  test('each signup that is answered alone costs at least one fsync before its answer', { skip }, async t => {
    const cwd = temporaryFolder(t)
    const trace = join(cwd, 'trace')
    const through = ['strace', '-D', '-f', '-qq', '-e', 'trace=fsync,fdatasync', '-o', trace]
    const program = await runProgram(t, env, { cwd, through })
    const synced = () =>
      readFileSync(trace, 'utf8').match(/(?:fsync|fdatasync)\(\d+\) += 0|sync resumed>.* = 0/g)?.length ?? 0
    for (let i = 0; i < 20; i++) {
      const before = synced()
      const answer = await fetch(`${program.baseUrl}/api/waitlist`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ name: 'Visitor', email: `visitor-${i}@example.com` }),
      })
      assert.equal(answer.status, 200)
      assert.ok(synced() > before, `signup ${i} was answered, yet nothing was synced for it`)
    }
  })

  test('an fsync that fails ends the process; after a restart every acknowledged signup is there', {
    skip,
  }, async t => {
    const cwd = temporaryFolder(t)
    const inject = 'inject=fsync:error=EIO:when=25'
    const through = ['strace', '-D', '-f', '-qq', '-e', 'trace=fsync', '-e', inject, '-o', join(cwd, 'trace')]
    const program = await runProgram(t, env, { cwd, through })
    const acknowledged = await signUpUntilItFails(program, 200)
    assert.ok(acknowledged.length > 0 && acknowledged.length < 200)
    assert.equal(await program.exited, 1)
    assert.match(program.stdout(), /the store failed: nothing more is acknowledged/)
    assert.match(program.stdout(), /disk I\/O error \(SQLite 1034\)\. The kernel's log \(dmesg\) says/)
    await restartFindsAll(t, cwd, acknowledged)
  })

  test('so does a sync of the database beside the commits', {
    skip: skip || (!isSlow && 'it runs in .ci/run'),
  }, async t => {
    const cwd = temporaryFolder(t)
    const inject = 'inject=fdatasync:error=EIO:when=1'
    const through = ['strace', '-D', '-f', '-qq', '-e', 'trace=fdatasync', '-e', inject, '-o', join(cwd, 'trace')]
    const program = await runProgram(t, { ...env, RATE_LIMIT_WINDOW: '1s' }, { cwd, through })
    // Until the log is so long that it is brought into the database.
    const acknowledged = (
      await Promise.all(Array.from({ length: 32 }, (_, i) => signUpUntilItFails(program, 1_000, `visitor-${i}`)))
    ).flat()
    assert.ok(acknowledged.length < 32_000)
    assert.equal(await program.exited, 1)
    assert.match(program.stdout(), /waitlist\.db could not be synced: EIO/)
    await restartFindsAll(t, cwd, acknowledged)
  })

  // The first is what SQLite takes for a full disk, the second is an I/O error to it.
  for (const error of ['ENOSPC', 'EDQUOT']) {
    test(`without space (${error}) for a new file the start is refused in a sentence`, {
      skip: skip || (error === 'EDQUOT' && !isSlow && 'it runs in .ci/run'),
    }, async t => {
      const cwd = temporaryFolder(t)
      const files = ['', '-wal', '-shm', '-probe'].flatMap(ending => ['-P', join(cwd, `waitlist.db${ending}`)])
      const inject = ['-e', 'trace=pwrite64,write,ftruncate', '-e', `inject=pwrite64,write,ftruncate:error=${error}`]
      const through = ['strace', '-D', '-f', '-qq', ...files, ...inject, '-o', join(cwd, 'trace')]
      const program = spawnProgram(t, env, { cwd, args: ['serve'], through })
      assert.equal(await program.exited, 1)
      assert.match(
        program.stderr(),
        /^waitlist: waitlist\.db cannot be opened: the disk is full, or a quota is used up: /,
      )
      assert.doesNotMatch(program.stderr(), /\n\s+at /)
    })
  }
})
