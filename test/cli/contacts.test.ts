import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { noTerminal, runCommand as run, spawnOnTerminal } from '../harness/program.ts'
import { id, scene } from './contacts.scene.ts'

describe('waitlist list', { concurrency: true }, () => {
  test('shows those who were added last first, in columns that line up, and nothing that controls a terminal', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['list'])
    assert.deepEqual([code, stderr], [0, ''])
    const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ'
    const [heading, cyd, bob, ada, ...more] = stdout.split('\n')
    assert.deepEqual(more, [''])
    assert.equal(heading, 'signed up             state    name          address          source')
    assert.equal(cyd, '1970-01-01T00:00:00Z  listed   Cyd evil      cyd@example.com  news')
    assert.match(bob!, new RegExp(`^${time}  pending  Bob 李        bob@example\\.com$`))
    assert.match(ada!, new RegExp(`^${time}  listed   Ada Lovelace  Ada@Example\\.com$`))
  })

  test('json has one object a line, as the JSON export has it, and nothing else', async t => {
    const { cwd } = await scene(t)
    const { code, stdout } = await run(t, cwd, ['list', '--json', '--limit', '2'])
    assert.equal(code, 0)
    const exported = await run(t, cwd, ['export', '--format', 'json'])
    assert.deepEqual(stdout.trimEnd().split('\n'), exported.stdout.trimEnd().split('\n').toReversed().slice(0, 2))
  })

  test('the filters say which; what is left out is told', async t => {
    const { cwd } = await scene(t)
    const found = async (...args: string[]) => {
      const { code, stdout } = await run(t, cwd, ['list', ...args])
      assert.equal(code, 0)
      return [...stdout.matchAll(/(\S+)@/g)].map(([, who]) => who)
    }
    assert.deepEqual(await found('--search', 'B'), ['bob'])
    assert.deepEqual(await found('--since', '1h', '--state', 'listed'), ['Ada'])
    assert.deepEqual(await found('--until', '1970-01-02', '--source', 'news'), ['cyd'])
    assert.match(
      (await run(t, cwd, ['list', '-l', '2'])).stdout,
      /\nThere are more than these 2, which were added last; --limit shows them\.\n$/,
    )
  })

  test('nobody found is exit code 1, and options that cannot be understood are 2, with a sentence', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['list', '--search', 'nobody', '--json'])
    assert.deepEqual([code, stdout, stderr], [1, '', 'waitlist: There are no such contacts.\n'])
    await refused(t, 1, /There is no database at/)
    await refused(t, 2, /at most 10,000; waitlist export writes/, '--limit', '10001')
  })

  async function refused(t: TestContext, expected: number, sentence: RegExp, ...args: string[]): Promise<void> {
    const { code, stdout, stderr } = await run(t, temporaryFolder(t), ['list', ...args])
    assert.deepEqual([code, stdout], [expected, ''])
    assert.match(stderr, sentence)
  }
})

const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ'

describe('waitlist show', { concurrency: true }, () => {
  test('tells the history of one contact and what became of each delivery', async t => {
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
    assert.match(bob, /^state +pending: the provider has not confirmed it yet$/m)
    assert.match(bob, /^joined +not yet$/m)
    assert.match(bob, /^erased +1970-01-01T00:00:00Z; they signed up again$/m)
    assert.match(bob, /^\d+ +waiting +loops /m)
    const cyd = (await run(t, cwd, ['show', 'cyd@example.com'])).stdout
    assert.match(cyd, /^name {9}Cyd evil$/m)
    assert.match(cyd, /^joined +without an event: imported, or known to the provider before$/m)
    assert.match(cyd, /^source +utm_source=news, utm_medium==1\+1, ref=x, "y"$/m)
    assert.match(cyd, /\n\nThere are no deliveries\.\n$/)
  })

  test('who is not there is exit code 1, and whether they were erased', async t => {
    const { cwd } = await scene(t)
    const nobody = await run(t, cwd, ['show', 'nobody@example.com'])
    const sentence = 'waitlist: There is no contact with the address'
    assert.deepEqual([nobody.code, nobody.stdout, nobody.stderr], [1, '', `${sentence} nobody@example.com.\n`])
    const gone = await run(t, cwd, ['show', '--json', 'gone@example.com'])
    const erased = `${sentence} gone@example.com. It was erased at 1970-01-01T00:00:00Z.\n`
    assert.deepEqual([gone.code, gone.stdout, gone.stderr], [1, '', erased])
  })
})

const loops = { PROVIDER: 'loops', LOOPS_API_KEY: 'key' }

async function person(t: TestContext, cwd: string, address: string, env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await run(t, cwd, ['person', address], env)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^\{\n {2}"address"/, 'to be read by a person, too')
  return JSON.parse(stdout)
}

describe('waitlist person', { concurrency: true }, () => {
  test('everything about one person, and who else has a copy', async t => {
    const { cwd } = await scene(t)
    const ada = await person(t, cwd, 'ADA@example.com', loops)
    assert.deepEqual(Object.keys(ada), ['address', 'contact', 'deliveries', 'erasedAt', 'copies'])
    assert.equal(ada.address, 'ADA@example.com')
    const { id, name, email, state, createdAt, providerId, event } = ada.contact
    assert.deepEqual([name, email, state, providerId], ['Ada Lovelace', 'Ada@Example.com', 'listed', 'at-A'])
    assert.equal(event.id, `evt_${id}`)
    assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)
    assert.deepEqual(ada.copies, [
      { at: 'loops', contactId: 'at-A' },
      { at: 'webhook', since: ada.deliveries[0].settledAt },
    ])
    const cyd = await person(t, cwd, 'cyd@example.com')
    assert.deepEqual(cyd.contact.source, { utm_source: 'news', utm_medium: '=1+1', ref: 'x, "y"' })
    assert.deepEqual([cyd.deliveries, cyd.erasedAt], [[], null])
    assert.deepEqual(cyd.copies, [{ at: 'a former provider', contactId: 'at-C' }])
    assert.deepEqual((await person(t, cwd, 'bob@example.com', loops)).copies, [])
  })

  test('who was erased, and nothing else about them; of whom nothing is stored, that is exit code 1', async t => {
    const { cwd } = await scene(t)
    assert.deepEqual(await person(t, cwd, 'gone@example.com'), {
      address: 'gone@example.com',
      contact: null,
      deliveries: [],
      erasedAt: '1970-01-01T00:00:00.000Z',
      copies: [],
    })
    const { code, stdout, stderr } = await run(t, cwd, ['person', 'nobody@example.com'])
    assert.deepEqual([code, stdout], [1, ''])
    assert.equal(stderr, 'waitlist: There is no contact with the address nobody@example.com.\n')
  })
})

const name = 'Cyd \u202Eev\u2066il\u{E0041} 👩‍💻'
const campaign = 'spring\u202Egnp.exe\u200F'
const CONTROLLING = /(?![\r\n\u200C\u200D])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

test('what strangers typed turns the order of no letters, and stays the same to a program', async t => {
  const { cwd } = await scene(t)
  withDatabase(join(cwd, 'data', 'waitlist.db'), database =>
    database
      .prepare(`update contact set name = ?, source = ? where email = 'cyd@example.com'`)
      .run(name, JSON.stringify({ utm_campaign: campaign })),
  )
  for (const args of [
    ['person', 'cyd@example.com'],
    ['list', '--json', '--search', 'cyd'],
    ['export', '--format', 'json', '--search', 'cyd'],
  ]) {
    const { stdout } = await run(t, cwd, args)
    assert.doesNotMatch(stdout, CONTROLLING, args.join(' '))
    const value = JSON.parse(stdout)
    const contact = value.contact ?? value
    assert.deepEqual([contact.name, contact.source.utm_campaign], [name, campaign])
  }
  if (noTerminal) return t.diagnostic(noTerminal)
  const exported = spawnOnTerminal(t, {}, { cwd, args: ['export'] })
  assert.equal(await exported.exited, 0)
  const stdout = exported.stdout()
  assert.match(stdout, /,Cyd ev il 👩‍💻,cyd@example\.com,.*,spring gnp\.exe ,/)
  assert.doesNotMatch(stdout, CONTROLLING)
})
