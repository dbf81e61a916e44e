import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { runCommand as run } from '../harness/program.ts'
import { scene } from './contacts.scene.ts'

const loops = { PROVIDER: 'loops', LOOPS_API_KEY: 'key' }

async function person(t: TestContext, cwd: string, address: string, env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await run(t, cwd, ['person', address], env)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^\{\n {2}"address"/, 'to be read by a person, too')
  return JSON.parse(stdout)
}

describe('waitlist person', { concurrency: true, timeout: 60_000 }, () => {
  test('everything about one person, and who else has a copy', async t => {
    const { cwd } = await scene(t)
    const ada = await person(t, cwd, 'ADA@example.com', loops)
    assert.deepEqual(Object.keys(ada), ['address', 'contact', 'deliveries', 'erasedAt', 'copies'])
    assert.equal(ada.address, 'ADA@example.com')
    const { id, name, email, state, createdAt, providerId, event } = ada.contact
    assert.deepEqual([name, email, state, providerId], ['Ada Lovelace', 'Ada@Example.com', 'listed', 'at-A'])
    assert.equal(event.id, `evt_${id}`)
    assert.ok(Math.abs(Date.parse(createdAt) - Date.now()) < 60_000)
    assert.deepEqual(Object.keys(ada.deliveries[0]).sort(), [
      'attempts',
      'contactId',
      'destination',
      'due',
      'eventId',
      'number',
      'settledAt',
      'state',
      'why',
    ])
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
