import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { run } from '../harness/command.ts'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { id, scene } from './scene.ts'

const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ'

describe('waitlist list', { concurrency: true }, () => {
  test('shows those who were added last first, in columns that line up, and nothing that controls a terminal', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['list'])
    assert.deepEqual([code, stderr], [0, ''])
    const [heading, cyd, bob, ada, ...more] = stdout.split('\n')
    assert.deepEqual(more, [''])
    assert.equal(heading, 'signed up             state    name          address          source')
    assert.equal(cyd, '1970-01-01T00:00:00Z  listed   Cyd evil      cyd@example.com  news')
    assert.match(bob!, new RegExp(`^${time}  pending  Bob 李 +bob@example\\.com$`))
    assert.match(ada!, new RegExp(`^${time}  listed   Ada Lovelace  Ada@Example\\.com$`))
  })

  test('the filters say which; what is left out is said', async t => {
    const { cwd } = await scene(t)
    const found = async (...args: string[]) =>
      [...(await run(t, cwd, ['list', ...args])).stdout.matchAll(/(\S+)@/g)].map(([, who]) => who)
    assert.deepEqual(await found('--search', 'B'), ['bob'])
    assert.deepEqual(await found('--since', '1h', '--state', 'listed'), ['Ada'])
    assert.deepEqual(await found('--until', '1970-01-02', '--source', 'news'), ['cyd'])
    assert.equal((await run(t, cwd, ['list', '-l', '2'])).stderr, 'There are more than these 2; --limit shows more.\n')
  })

  test('nobody found is exit code 1, and so is no list', async t => {
    const { cwd } = await scene(t)
    const nobody = await run(t, cwd, ['list', '--search', 'nobody', '--json'])
    assert.deepEqual(nobody, { code: 1, stdout: '', stderr: 'waitlist: nothing was found.\n' })
    const none = await run(t, temporaryFolder(t), ['list'])
    assert.deepEqual([none.code, none.stdout], [1, ''])
    assert.match(none.stderr, /There is no database at/)
  })
})

describe('waitlist show', { concurrency: true }, () => {
  test('has the history of one contact and what became of each delivery', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['show', 'ada@EXAMPLE.com'])
    assert.deepEqual([code, stderr], [0, ''])
    const lines = [
      `id           ${id}`,
      'name         Ada Lovelace',
      'address      Ada@Example\\.com',
      'state        listed',
      `signed up    ${time}`,
      `joined       ${time}, waitlist\\.joined, evt_${id}`,
      'source       not known',
      'provider id  at-A',
      '',
      'delivery  state      destination  attempts  due or settled        why',
      `\\d         delivered  webhook      1         ${time}`,
      `\\d         abandoned  mail         1         ${time}  HTTP 404: \\[31m not found`,
      '',
    ]
    assert.match(stdout, new RegExp(`^${lines.join('\n')}$`))
  })

  test('who is pending, who was erased before, and who never had an event', async t => {
    const { cwd } = await scene(t)
    const bob = (await run(t, cwd, ['show', 'bob@example.com'])).stdout
    assert.match(bob, /^joined +without an event until the provider has taken it$/m)
    assert.match(bob, /^erased +1970-01-01T00:00:00Z; they signed up again$/m)
    assert.match(bob, /^\d+ +waiting +loops /m)
    const cyd = (await run(t, cwd, ['show', 'cyd@example.com'])).stdout
    assert.match(cyd, /^joined +without an event: imported, or known to the provider before$/m)
    assert.match(cyd, /^source +utm_source=news, utm_medium==1\+1, ref=x, "y"$/m)
    const gone = (await run(t, cwd, ['show', 'gone@example.com'])).stdout
    assert.match(gone, /^erased +1970-01-01T00:00:00Z$/m)
    const nobody = await run(t, cwd, ['show', 'nobody@example.com'])
    assert.deepEqual(nobody.code, 1)
    assert.equal(nobody.stderr, 'waitlist: There is no contact with the address nobody@example.com.\n')
  })

  test('--json answers a data request: everything about one person, and who else has a copy', async t => {
    const { cwd } = await scene(t)
    const loops = { PROVIDER: 'loops', LOOPS_API_KEY: 'key' }
    const person = async (address: string, env: Record<string, string> = {}) =>
      JSON.parse((await run(t, cwd, ['show', '--json', address], env)).stdout)
    const ada = await person('ADA@example.com', loops)
    assert.deepEqual(Object.keys(ada), ['address', 'contact', 'deliveries', 'erasedAt', 'copies'])
    const { name, email, state, providerId, event } = ada.contact
    assert.deepEqual([name, email, state, providerId], ['Ada Lovelace', 'Ada@Example.com', 'listed', 'at-A'])
    assert.equal(event.id, `evt_${ada.contact.id}`)
    assert.deepEqual(ada.copies, [
      { at: 'loops', contactId: 'at-A' },
      { at: 'webhook', since: ada.deliveries[0].settledAt },
    ])
    assert.deepEqual((await person('cyd@example.com')).copies, [{ at: 'a former provider', contactId: 'at-C' }])
    assert.deepEqual((await person('bob@example.com', loops)).copies, [])
    assert.deepEqual(await person('gone@example.com'), {
      address: 'gone@example.com',
      contact: null,
      deliveries: [],
      erasedAt: '1970-01-01T00:00:00.000Z',
      copies: [],
    })
  })
})

const name = 'Cyd \u202Eev\u2066il\u{E0041} 👩‍💻'
const CONTROLLING = /(?![\r\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

test('what strangers typed turns the order of no letters, and stays the same to a program', async (t: TestContext) => {
  const { cwd } = await scene(t)
  withDatabase(join(cwd, 'data', 'waitlist.db'), database =>
    database.prepare(`update contact set name = ? where email = 'cyd@example.com'`).run(name),
  )
  const [listed, exported, shown] = await Promise.all(
    [
      ['list', '--search', 'cyd'],
      ['export', '--search', 'cyd'],
      ['show', 'cyd@example.com'],
    ].map(async args => (await run(t, cwd, [...args, '--json'])).stdout),
  )
  for (const stdout of [listed, exported, shown]) assert.doesNotMatch(stdout!, CONTROLLING)
  assert.equal(listed, exported, 'one object a line')
  assert.equal(JSON.parse(listed!).name, name)
  assert.equal(JSON.parse(shown!).contact.name, name)
})
