import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { type Program, runProgram, spawnProgram } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { noStrace } from '../harness/strace.ts'

const skip = noStrace()
/** What EDQUOT does where ENOSPC does the same, and both in the places where that is told in the same sentence. */
const skipTwin = skip || (!isSlow && 'it runs in .ci/run')

const env = { HOST: '127.0.0.1', PORT: '0', RATE_LIMIT: '1000000', DATABASE_URL: 'sqlite:waitlist.db' }

/** One after the other, so that each is a transaction of its own. Resolves with the acknowledged addresses. */
async function signUpUntilItFails({ baseUrl }: Program, most: number): Promise<string[]> {
  const acknowledged: string[] = []
  for (let i = 0; i < most; i++) {
    const email = `visitor-${i}@example.com`
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

describe('what is acknowledged is synced', { concurrency: true, timeout: 60_000 }, () => {
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

  test('a write that fails ends the process; after a restart every acknowledged signup is there', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    const cwd = temporaryFolder(t)
    // No file may grow beyond 256 KiB (bash counts in KiB): the operating system answers EFBIG, which is not "full".
    const through = ['bash', '-c', 'ulimit -f 256; exec "$@"', 'bash']
    const program = await runProgram(t, env, { cwd, through })
    const acknowledged = await signUpUntilItFails(program, 5_000)
    assert.ok(acknowledged.length > 0 && acknowledged.length < 5_000)
    assert.equal(await program.exited, 1)
    assert.match(program.stdout(), /the store failed: nothing more is acknowledged/)
    await restartFindsAll(t, cwd, acknowledged)
  })

  // The first is what SQLite takes for a full disk, the second is an I/O error to it.
  for (const error of ['ENOSPC', 'EDQUOT']) {
    test(`a disk without space (${error}) answers 500 and the process stays up; it works again with space`, {
      skip: skipTwin,
    }, async t => {
      const cwd = temporaryFolder(t)
      const files = ['-wal', '-probe'].flatMap(ending => ['-P', join(cwd, `waitlist.db${ending}`)])
      const inject = ['-e', `inject=pwrite64:error=${error}:when=70..90`, '-e', `inject=write:error=${error}`]
      const traced = ['-e', 'trace=pwrite64,write', ...inject, '-o', join(cwd, 'trace')]
      const program = await runProgram(t, env, { cwd, through: ['strace', '-D', '-f', '-qq', ...files, ...traced] })
      const acknowledged = await signUpUntilItFails(program, 200)
      assert.ok(acknowledged.length < 200)
      let status = 500
      for (let i = 0; i < 100 && status === 500; i++) {
        const answer = await fetch(`${program.baseUrl}/api/waitlist`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ name: 'Later', email: 'later@example.com' }),
        })
        status = answer.status
        await answer.text()
      }
      assert.equal(status, 200)
      assert.match(program.stdout(), /"signups are refused"/)
      assert.equal(existsSync(join(cwd, 'waitlist.db-probe')), false)
      assert.equal(await program.end('SIGTERM'), 0)
      await restartFindsAll(t, cwd, [...acknowledged, 'later@example.com'])
    })
  }

  for (const error of ['ENOSPC', 'EDQUOT']) {
    for (const [what, calls] of [
      ['a new file', 'pwrite64,write,ftruncate'],
      ['the index of the log', 'ftruncate,write'],
    ] as const) {
      test(`without space (${error}) for ${what} the start is refused in a sentence`, {
        skip: error === 'ENOSPC' && what === 'a new file' ? skip : skipTwin,
      }, async t => {
        const cwd = temporaryFolder(t)
        const files = ['', '-wal', '-shm', '-probe'].flatMap(ending => ['-P', join(cwd, `waitlist.db${ending}`)])
        const inject = ['-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`]
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
  }
})
