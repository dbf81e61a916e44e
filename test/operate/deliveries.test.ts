import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { eventId } from '../../src/signup/contact.ts'
import { run as command } from '../harness/command.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const run = (t: TestContext, cwd: string, ...args: string[]) => command(t, cwd, ['deliveries', ...args])

/**
 * A folder with `data/waitlist.db`, open in a store: 4 contacts, 8 deliveries. Those of the webhook are claimed; the first is
 * delivered, the second abandoned.
 */
async function prepared(t: TestContext) {
  const cwd = temporaryFolder(t)
  const store = await storeAt(join(cwd, 'data', 'waitlist.db'), { destinations: ['webhook', 'crm'] })
  t.after(store.close)
  for (const who of ['Ada', 'Bob', 'Cyd', 'Dot']) await store.admit(signup(who, `${who}@example.com`))
  const claimed = await store.claim('webhook', 10)
  await store.settle(claimed[0]!, { is: 'delivered' })
  await store.settle(claimed[1]!, { is: 'abandoned', why: 'HTTP 404:\u001b[31m not\n found' })
  return { cwd, store, claimed }
}

describe('waitlist deliveries', { concurrency: true }, () => {
  test('lists the newest first, with the addresses of the contacts', async t => {
    const { cwd } = await prepared(t)
    const { code, stdout, stderr } = await run(t, cwd)
    assert.deepEqual([code, stderr], [0, ''])
    const [heading, ...rows] = stdout.trimEnd().split('\n')
    assert.match(heading!, /^delivery {2}state +destination {2}attempts {2}due or settled +address +why$/)
    assert.deepEqual(
      rows.map(row => row.replace(/\S+Z/, '').split(/\s+/).slice(0, 5).join(' ')),
      [
        '8 waiting crm 0 Dot@example.com',
        '7 waiting webhook 0 Dot@example.com',
        '6 waiting crm 0 Cyd@example.com',
        '5 waiting webhook 0 Cyd@example.com',
        '4 waiting crm 0 Bob@example.com',
        '3 abandoned webhook 1 Bob@example.com',
        '2 waiting crm 0 Ada@example.com',
        '1 delivered webhook 1 Ada@example.com',
      ],
    )
    assert.match(rows[5]!, /com {2}HTTP 404: \[31m not found$/, 'no control characters reach the terminal')
  })

  test('state, destination and limit say which; what is left out is said', async t => {
    const { cwd } = await prepared(t)
    const numbers = async (...args: string[]) =>
      [...(await run(t, cwd, ...args)).stdout.matchAll(/^\d+/gm)].map(([number]) => Number(number))
    assert.deepEqual(await numbers('--state', 'abandoned'), [3])
    assert.deepEqual(await numbers('--destination', 'crm', '--limit', '2'), [8, 6])
    assert.equal((await run(t, cwd, '--limit', '7')).stderr, 'There are more than these 7; --limit shows more.\n')
    const none = await run(t, cwd, '--destination', 'nobody')
    assert.deepEqual(none, { code: 1, stdout: '', stderr: 'waitlist: nothing was found.\n' })
  })

  test('json has one object a line', async t => {
    const { cwd, claimed } = await prepared(t)
    const { stdout } = await run(t, cwd, '--state', 'abandoned', '--json')
    const { due, settledAt, ...rest } = JSON.parse(stdout)
    const { contact } = claimed[1]!
    assert.deepEqual(rest, {
      number: 3,
      kind: 'joined',
      eventId: eventId(contact, 'joined'),
      contactId: contact.id,
      email: 'Bob@example.com',
      destination: 'webhook',
      state: 'abandoned',
      attempts: 1,
      why: 'HTTP 404:\u001b[31m not\n found',
    })
    assert.equal(due, settledAt)
  })
})

describe('waitlist deliveries replay', { concurrency: true }, () => {
  test('by number: what has ended is due again', async t => {
    const { cwd, store, claimed } = await prepared(t)
    const { code, stdout, stderr } = await run(t, cwd, 'replay', '1', '3')
    assert.deepEqual([code, stderr], [0, ''])
    assert.equal(stdout, '2 deliveries are due now; the running service attempts what is due.\n')
    assert.deepEqual(
      (await store.claim('webhook', 10)).map(({ contact, attempts, doubt }) => [contact.id, attempts, doubt]),
      claimed.slice(0, 2).map(({ contact }) => [contact.id, 0, false]),
    )
  })

  test('what cannot be replayed is named; the rest is replayed', async t => {
    const { cwd, store } = await prepared(t)
    const nothing = await run(t, cwd, 'replay', '--abandoned', '--destination', 'crm')
    assert.deepEqual(nothing, { code: 1, stdout: '', stderr: 'waitlist: nothing was found.\n' })
    const { code, stdout, stderr } = await run(t, cwd, 'replay', '3', '5', '99')
    assert.equal(code, 1)
    assert.match(stdout, /^1 delivery is due now/)
    assert.equal(stderr, 'waitlist: not replayed, since they do not exist or are being attempted right now: 5, 99.\n')
    assert.equal((await store.claim('webhook', 10)).length, 1)
    assert.equal((await run(t, cwd, 'replay', '--abandoned')).code, 1, 'none is left')
  })

  test('what contradicts or says nothing is refused, and nothing is replayed', async t => {
    const { cwd, store } = await prepared(t)
    for (const args of [['replay'], ['replay', '3', '--abandoned'], ['replay', '3', '0'], ['--limit', '10001']]) {
      const { code, stdout } = await run(t, cwd, ...args)
      assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    }
    assert.deepEqual(await store.claim('webhook', 10), [])
  })
})
