import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { signup } from '../contracts/store.place.ts'
import { sqlOn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { hasSaid, logOf, type Program, runProgram, spawnProgram, until } from '../harness/program.ts'

const off = { HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0' }
const on = { ...off, HOLD_SUSPICIOUS: 'true' }
const THROUGH = 'the mailboxes of earlier contacts are known now'

describe('HOLD_SUSPICIOUS, set later', { timeout: 60_000 }, () => {
  test('further spellings of those who came before, or from a file, are held as soon as the log says so', async t => {
    const cwd = temporaryFolder(t)
    const path = join(cwd, 'data', 'waitlist.db')
    const sql = sqlOn(path)
    const signUp = async (program: Program, email: string) => {
      const told = await visit(program, email)
      assert.deepEqual([told?.status, told?.alreadyExisted], [200, false])
      return told?.automationTriggered ? 'listed' : 'held'
    }
    const add = async (env: Record<string, string>, email: string) => {
      writeFileSync(join(cwd, 'list.csv'), `email,name\n${email},Visitor\n`)
      const program = spawnProgram(t, env, { cwd, args: ['import', 'list.csv'] })
      assert.equal(await program.exited, 0, program.stderr())
    }

    const store = await sqliteStore({ path, eventName: 'waitlist.joined', minimumFree: 0 })
    await store.admit(signup('Ada', 'ada.lovelace@gmail.com'))
    await store.close()
    const before = await runProgram(t, off, { cwd })
    assert.equal(await signUp(before, 'adalovelace@gmail.com'), 'listed')
    await add(off, 'bob@outlook.com')
    assert.equal(await before.end('SIGTERM'), 0)
    assert.deepEqual(await sql('select 1 from contact where mailbox is not null'), [])
    assert.equal(hasSaid(before, THROUGH), false)

    const after = await runProgram(t, on, { cwd })
    await until(() => hasSaid(after, THROUGH))
    assert.equal(logOf(after).find(({ msg }) => msg === THROUGH)!.contacts, 3)
    assert.equal(await signUp(after, 'adalovelace+2@googlemail.com'), 'held')
    assert.equal(await signUp(after, 'bob+news@outlook.com'), 'held')
    assert.equal(await signUp(after, 'cyd@gmail.com'), 'listed')
    // Nobody waits for the next pass where the command has the setting, too.
    await add(on, 'c.y.d@gmail.com')
    await add(on, 'dot@gmail.com')
    assert.equal(await signUp(after, 'd.o.t@gmail.com'), 'held')
    assert.deepEqual(await sql("select 1 from contact where state = 'held' and reason <> 'same-mailbox'"), [])
    assert.equal(await after.end('SIGTERM'), 0)
    // A pass that changes nothing says nothing.
    assert.equal(logOf(after).filter(({ msg }) => msg === THROUGH).length, 1)
  })
})
