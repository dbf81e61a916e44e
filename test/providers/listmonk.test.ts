import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { listmonkFake, listmonkSettings } from './listmonk.fake.ts'
import { callsOf, starting } from './started.ts'

providerContract({
  vendor: 'listmonk',
  settings: listmonkSettings,
  wrongKey: { LISTMONK_TOKEN: 'another-token' },
  wrongSetting: { LISTMONK_LIST_IDS: '99' },
  fake: listmonkFake,
  refused: 'refused@example.com',
})

const ada = contactOf('ada@example.com')
const event = eventOf(ada)
const never = new AbortController().signal

const started = starting('listmonk', listmonkFake, listmonkSettings)

describe('listmonk', { timeout: 60_000 }, () => {
  test('what is sent', async t => {
    const { server, provider } = await started(t)
    assert.equal(await provider.check!(never), null)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.automation!.deliver(event, never)
    await provider.automation!.deliver({ ...event, contact: { ...ada, providerId: '1' } }, never)
    assert.ok(server.asked.every(({ headers }) => headers.authorization === 'token waitlist:token-of-the-test'))
    const body = {
      email: 'ada@example.com',
      name: 'Ada King Lovelace',
      status: 'enabled',
      lists: [1, 2],
      attribs: { waitlist: ada.id },
    }
    const sent = server.asked.map(({ method, path, query, json }) => [`${method} ${path}`, json ?? query])
    assert.deepEqual(sent, [
      ['GET /api/lists/1', {}],
      ['GET /api/lists/2', {}],
      ['POST /api/subscribers', body],
      ['POST /api/subscribers', body],
      ['GET /api/subscribers', { search: '^ada@example\\.com$', per_page: '20' }],
      ['POST /api/tx', { subscriber_email: 'ada@example.com', template_id: 5 }],
      ['POST /api/tx', { subscriber_id: 1, template_id: 5 }],
    ])
  })

  test('its address may have a path', async t => {
    const seen: string[] = []
    const server = await startVendor(t, ({ path }) => {
      seen.push(path)
      return { status: 404 }
    })
    const settings = { ...listmonkSettings(`${server.url}/lists/`) }
    const provider = await opened(t, { vendor: 'listmonk' }, settings)
    await provider.createContact(ada, false, never)
    assert.deepEqual(seen, ['/lists/api/subscribers'])
  })

  test('an address with signs of a regular expression is found as it is', async t => {
    for (const email of ["a.b+c*d?e^f$g|h{1}i/j'k@example.com", 'ada+waitlist@example.com']) {
      const { fake, provider } = await started(t)
      const contact = contactOf(email)
      await provider.createContact(contactOf('other@example.com'), false, never)
      await provider.createContact(contact, false, never)
      const again = await provider.createContact(contact, true, never)
      assert.deepEqual(again, { is: 'existing', providerId: '2', ours: true }, email)
      assert.equal(fake.count(email), 1)
    }
  })

  test('ours carries our mark: another contact of the same address does not', async t => {
    const { provider } = await started(t)
    await provider.createContact(ada, false, never)
    const other = contactOf('ada@example.com', { id: '01981d4f-3c00-7c4e-9d0a-000000000000' })
    const creation = await provider.createContact(other, true, never)
    assert.deepEqual(creation, { is: 'existing', providerId: '1', ours: false })
  })

  test('one that the API user may not see cannot be told', async t => {
    const { fake, provider } = await started(t, {}, asked => {
      if (asked.method !== 'GET') return undefined
      return { status: 200, body: { data: { results: [], total: 0, page: 1, per_page: 20 } } }
    })
    fake.had('ada@example.com')
    assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing' })
  })

  test('a search that fails is returned as it failed', async t => {
    for (const [status, is] of [
      [403, 'misconfigured'],
      [500, 'unreached'],
      [503, 'unreached'],
      [200, 'unreached'],
    ] as const) {
      const { fake, provider } = await started(t, {}, ({ method }) =>
        method === 'GET' ? { status, body: {} } : undefined,
      )
      fake.had('ada@example.com')
      assert.equal((await provider.createContact(ada, true, never)).is, is)
    }
  })

  test('a list that was left out without a word is our mistake, and joined once it is there', async t => {
    const { fake, server, provider } = await started(t)
    fake.lists.delete(2)
    const said = { is: 'misconfigured', tookEffect: true }
    // The second attempt finds that nothing has changed.
    for (const doubt of [false, true]) {
      const creation = await provider.createContact(ada, doubt, never)
      assert.ok(creation.is === 'misconfigured')
      assert.deepEqual({ is: creation.is, tookEffect: creation.tookEffect }, said)
      assert.match(creation.why, /not on the lists 2: do they exist/)
    }
    fake.lists.add(2)
    const last = await provider.createContact(ada, true, never)
    assert.deepEqual(last, { is: 'existing', providerId: '1', ours: true })
    const { lists } = fake.kept('ada@example.com') as { lists: { id: number }[] }
    assert.deepEqual(
      lists.map(({ id }) => id),
      [1, 2],
    )
    assert.deepEqual(server.asked.findLast(({ method }) => method === 'PUT')?.json, {
      ids: [1],
      action: 'add',
      target_list_ids: [2],
      status: 'unconfirmed',
    })
  })

  test('an addition to a list that fails leaves doubt, however it failed', async t => {
    for (const [status, is] of [
      [400, 'misconfigured'],
      [403, 'misconfigured'],
      [500, 'unclear'],
      [503, 'unclear'],
    ] as const) {
      const failing = ({ method }: Asked) => (method === 'PUT' ? { status, body: { message: 'No' } } : undefined)
      const { fake, provider } = await started(t, {}, failing)
      fake.lists.delete(2)
      await provider.createContact(ada, false, never)
      const creation = await provider.createContact(ada, true, never)
      assert.equal(creation.is, is)
      assert.equal(creation.is === 'misconfigured' && creation.tookEffect, is === 'misconfigured')
    }
  })

  test('the lists of a subscriber who is not ours stay as they are', async t => {
    const { fake, server, provider } = await started(t)
    fake.had('ada@example.com')
    const creation = await provider.createContact(ada, true, never)
    assert.deepEqual(creation, { is: 'existing', providerId: '1', ours: false })
    assert.deepEqual(callsOf(server), ['POST /api/subscribers', 'GET /api/subscribers'])
  })

  test('403 is our mistake, and so is a 400 about the header or from something else than listmonk', async t => {
    const rows: [Said, string][] = [
      [{ status: 403, body: { message: 'invalid API credentials' } }, 'misconfigured'],
      [{ status: 403, body: { message: 'Permission denied: lists' } }, 'misconfigured'],
      [{ status: 400, body: { message: 'unknown Authorization scheme' } }, 'misconfigured'],
      [{ status: 400, body: { message: 'api_key:token missing' } }, 'misconfigured'],
      [{ status: 400, body: { message: 'empty `api_key` or `token`' } }, 'misconfigured'],
      [{ status: 400, body: '<html>Bad Request</html>' }, 'misconfigured'],
      [{ status: 400, body: {} }, 'misconfigured'],
      [{ status: 404, body: { message: 'Not Found' } }, 'misconfigured'],
      [{ status: 429, body: { message: 'Too many' } }, 'unreached'],
      [{ status: 400, body: { message: 'Correo electrónico inválido.' } }, 'refused'],
      [{ status: 400, body: { message: '域名已被屏蔽' } }, 'refused'],
    ]
    for (const [said, is] of rows) {
      const { provider } = await started(t, {}, () => said)
      assert.equal((await provider.createContact(ada, false, never)).is, is, JSON.stringify(said))
    }
  })

  test('a template that does not exist refuses the mail; without one there is no automation', async t => {
    const { fake, provider } = await started(t)
    fake.templates.delete(5)
    await provider.createContact(ada, false, never)
    assert.equal((await provider.automation!.deliver(event, never)).is, 'refused')
    const none = await started(t, { LISTMONK_TEMPLATE_ID: '' })
    assert.equal(none.provider.automation, null)
  })

  test('the check looks at every list', async t => {
    const { fake, provider } = await started(t)
    fake.lists.delete(2)
    const failure = await provider.check!(never)
    assert.ok(failure?.is === 'misconfigured')
    assert.match(failure.why, /^look at list 2: answered with 400/)
  })
})
