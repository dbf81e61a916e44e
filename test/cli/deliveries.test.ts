import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { eventId } from '../../src/signup/contact.ts'
import type { Delivery } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runCommand } from '../harness/program.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const run = (t: TestContext, cwd: string, ...args: string[]) => runCommand(t, cwd, ['deliveries', ...args])

interface Prepared {
  readonly cwd: string
  readonly path: string
  readonly store: Store
  /** Claimed for the webhook and not settled, except for the first, which is delivered, and the second, abandoned. */
  readonly claimed: readonly Delivery[]
}

/** A folder with `data/waitlist.db`, where the program looks by default, open in a store: 4 contacts, 8 deliveries. */
async function prepared(t: TestContext): Promise<Prepared> {
  const cwd = temporaryFolder(t)
  const path = join(cwd, 'data', 'waitlist.db')
  const store = await storeAt(path, { destinations: ['webhook', 'crm'] })
  t.after(store.close)
  for (const who of ['Ada', 'Bob', 'Cyd', 'Dot']) await store.admit(signup(who, `${who}@example.com`))
  const claimed = await store.claim('webhook', 10)
  await store.settle(claimed[0]!, { is: 'delivered' })
  await store.settle(claimed[1]!, { is: 'abandoned', why: 'HTTP 404:\u001b[31m not\n found' })
  return { cwd, path, store, claimed }
}

describe('waitlist deliveries', { concurrency: true }, () => {
  test('lists the newest first in an aligned table, without names and addresses', async t => {
    const { cwd, claimed } = await prepared(t)
    const { code, stdout, stderr } = await run(t, cwd)
    assert.equal(stderr, '')
    assert.equal(code, 0)
    const lines = stdout.split('\n')
    assert.equal(lines.pop(), '')
    assert.match(lines[0]!, /^number {2}state +destination {2}attempts {2}due or settled +contact +why$/)
    const rows = lines.slice(1).map(line => line.split(/ {2,}/))
    assert.deepEqual(
      rows.map(([number, state, destination, attempts]) => [number, state, destination, attempts]),
      [
        ['8', 'waiting', 'crm', '0'],
        ['7', 'waiting', 'webhook', '0'],
        ['6', 'waiting', 'crm', '0'],
        ['5', 'waiting', 'webhook', '0'],
        ['4', 'waiting', 'crm', '0'],
        ['3', 'abandoned', 'webhook', '1'],
        ['2', 'waiting', 'crm', '0'],
        ['1', 'delivered', 'webhook', '1'],
      ],
    )
    assert.ok(rows.every(row => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(row[4]!)))
    assert.equal(rows[5]![5], claimed[1]!.contact.id)
    assert.equal(rows[5]![6], 'HTTP 404: [31m not found', 'no control characters reach the terminal')
    assert.doesNotMatch(stdout, /@|Ada/)
  })

  test('state, destination and limit say which; what is left out is told', async t => {
    const { cwd } = await prepared(t)
    const numbers = async (...args: string[]) => {
      const { code, stdout } = await run(t, cwd, 'list', ...args)
      assert.equal(code, 0)
      return [...stdout.matchAll(/^\d+/gm)].map(([number]) => Number(number))
    }
    assert.deepEqual(await numbers('--state', 'abandoned'), [3])
    assert.deepEqual(await numbers('--destination', 'crm', '--limit', '2'), [8, 6])
    assert.match(
      (await run(t, cwd, '--limit', '7')).stdout,
      /\nThere are more than the newest 7; --limit shows them\.\n$/,
    )
    assert.equal((await run(t, cwd, '--destination', 'nobody')).stdout, 'There are no such deliveries.\n')
  })

  test('json has one object a line, and nothing else', async t => {
    const { cwd, claimed } = await prepared(t)
    const { code, stdout } = await run(t, cwd, '--state', 'abandoned', '--format', 'json')
    assert.equal(code, 0)
    const { due, settledAt, ...rest } = JSON.parse(stdout)
    const { contact } = claimed[1]!
    assert.deepEqual(rest, {
      number: 3,
      kind: 'joined',
      eventId: eventId(contact, 'joined'),
      contactId: contact.id,
      destination: 'webhook',
      state: 'abandoned',
      attempts: 1,
      why: 'HTTP 404:\u001b[31m not\n found',
    })
    assert.equal(due, settledAt)
    assert.equal((await run(t, cwd, '-f', 'json')).stdout.trimEnd().split('\n').length, 8)
  })

  test('show tells all about one, who joined too', async t => {
    const { cwd, claimed } = await prepared(t)
    const { code, stdout } = await run(t, cwd, 'show', '3')
    assert.equal(code, 0)
    const known = Object.fromEntries(
      stdout
        .trimEnd()
        .split('\n')
        .map(line => line.split(/ {2,}/)),
    )
    const { settled, joined, signup: at, ...rest } = known
    assert.deepEqual(rest, {
      number: '3',
      state: 'abandoned',
      destination: 'webhook',
      attempts: '1',
      why: 'HTTP 404: [31m not found',
      event: `waitlist.joined, ${eventId(claimed[1]!.contact, 'joined')}`,
      name: 'Bob',
      email: 'Bob@example.com',
    })
    assert.match((await run(t, cwd, 'show', '8')).stdout, /^due +\d{4}-/m)
    const unknown = await run(t, cwd, 'show', '99')
    assert.deepEqual([unknown.code, unknown.stdout, unknown.stderr], [1, '', 'waitlist: There is no delivery 99.\n'])
  })
})

describe('waitlist deliveries replay', { concurrency: true }, () => {
  test('by number: what is over is due again, while the store is open', async t => {
    const { cwd, store, claimed } = await prepared(t)
    const { code, stdout, stderr } = await run(t, cwd, 'replay', '1', '3')
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal(stdout, '2 deliveries are due now; the running service attempts what is due.\n')
    const again = await store.claim('webhook', 10)
    assert.deepEqual(
      again.map(({ contact, attempts, doubt }) => [contact.id, attempts, doubt]),
      claimed.slice(0, 2).map(({ contact }) => [contact.id, 0, false]),
    )
  })

  test('what cannot be replayed is told one by one; the rest is replayed', async t => {
    const { cwd, store } = await prepared(t)
    const nothing = await run(t, cwd, 'replay', '--abandoned', '--destination', 'crm')
    assert.deepEqual([nothing.code, nothing.stdout], [1, ''])
    assert.match(nothing.stderr, /There is nothing to replay: no delivery to crm is abandoned\./)
    const { code, stdout, stderr } = await run(t, cwd, 'replay', '3', '5', '98', '99')
    assert.equal(code, 1)
    assert.match(stdout, /^1 delivery is due now/)
    assert.equal(
      stderr,
      'waitlist: not everything could be replayed:\n  - There is no delivery 98.\n  - There is no delivery 99.\n' +
        '  - Delivery 5 is being attempted right now. Try again in a minute.\n',
    )
    assert.equal((await store.claim('webhook', 10)).length, 1)
  })
})

describe('waitlist deliveries in words', { concurrency: true }, () => {
  test('wishes that contradict or say nothing are refused, and nothing is replayed', async t => {
    const { cwd, store } = await prepared(t)
    const cases: readonly (readonly [args: string[], sentence: RegExp])[] = [
      [['replay'], /Say what to replay: the numbers of deliveries .* or --abandoned/],
      [['replay', '3', '--abandoned'], /either the numbers .* or --abandoned .*, not both/],
      [['replay', '3', '0'], /'0' is invalid.*whole number/],
      [['--limit', '10001'], /--limit is at most 10,000/],
      [['--format', 'csv'], /Allowed choices are table, json/],
    ]
    for (const [args, sentence] of cases) {
      const { code, stdout, stderr } = await run(t, cwd, ...args)
      assert.match(stderr, sentence, args.join(' '))
      assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    }
    assert.deepEqual(await store.claim('webhook', 10), [])
  })
})
