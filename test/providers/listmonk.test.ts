import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as passes } from 'node:timers/promises'
import { readConfig } from '../../src/config/config.ts'
import type { Contact } from '../../src/waitlist/rules/contact.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { isSlow } from '../harness/slow.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { type ListmonkFake, listmonkFake, listmonkSettings } from './listmonk.fake.ts'
import { callsOf, starting } from './started.ts'

providerContract({
  vendor: 'listmonk',
  settings: listmonkSettings,
  wrongKey: { LISTMONK_TOKEN: 'another-token' },
  wrongSetting: { LISTMONK_LIST_IDS: '99' },
  fake: listmonkFake,
  refused: 'refused@example.com',
  joining: { members: ['lists'] },
  // A mail to nobody, which listmonk refuses after it has found the template.
  harmless: 'POST /api/tx',
})

const ada = contactOf('ada@example.com')
const event = eventOf(ada)
const never = new AbortController().signal

const started = starting('listmonk', listmonkFake, listmonkSettings)

describe('listmonk', { timeout: 60_000 }, () => {
  test('what is sent', async t => {
    const { server, provider } = await started(t)
    assert.equal(await provider.check(never), null)
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
      ['GET /api/profile', {}],
      ['GET /api/lists/1', {}],
      ['GET /api/lists/2', {}],
      ['POST /api/tx', { subscriber_id: 2_147_483_647, template_id: 5 }],
      ['POST /api/subscribers', body],
      ['POST /api/subscribers', body],
      ['GET /api/subscribers', { search: '^ada@example\\.com$', per_page: '1' }],
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

  test('in doubt, one that the API user may not see is not ours', async t => {
    const { fake, server, provider } = await started(t)
    fake.lists.set(7, 'single')
    fake.put('ada@example.com', 'enabled', { 7: 'unconfirmed' })
    fake.granted = new Set([1, 2])
    assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', ours: false })
    const looked = ['GET /api/lists/1', 'GET /api/lists/2']
    assert.deepEqual(callsOf(server), ['POST /api/subscribers', 'GET /api/subscribers', ...looked])
    // Ours may be on none but a list that is gone, or no longer the API user's.
    fake.lists.delete(2)
    const creation = await provider.createContact(ada, true, never)
    assert.ok(creation.is === 'misconfigured' && creation.tookEffect)
  })

  test('one whose address is the name of another one cannot be told, nor joined', async t => {
    for (const existing of ['leave', 'join']) {
      const { fake, server, provider } = await started(t, { PROVIDER_EXISTING: existing })
      fake.had('ada@example.com')
      await provider.createContact(contactOf('other@example.com', { name: 'ada@example.com' }), false, never)
      assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing' })
      assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
      assert.equal(fake.joined!('ada@example.com'), false)
      assert.ok(server.asked.every(({ method }) => method !== 'PUT'))
    }
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

  test('a list that is gone or forbidden is our mistake, and joined once it is mended, with one opt-in mail', async t => {
    const breaks: [string, (fake: ListmonkFake) => void][] = [
      ['gone', fake => fake.lists.delete(2)],
      ['forbidden', fake => (fake.granted = new Set([1]))],
    ]
    for (const [what, breakIt] of breaks) {
      const { fake, server, provider } = await started(t)
      breakIt(fake)
      // The second attempt finds that nothing has changed.
      for (const [doubt, why] of [
        [false, /not on the lists 2: do they exist/],
        [true, /^look at list 2: answered with 40[03]/],
      ] as const) {
        const creation = await provider.createContact(ada, doubt, never)
        assert.ok(creation.is === 'misconfigured' && creation.tookEffect, what)
        assert.match(creation.why, why)
      }
      fake.lists.set(2, 'double')
      fake.granted = new Set([1, 2])
      assert.equal(fake.confirmations('ada@example.com'), 0)
      const mended = await provider.createContact(ada, true, never)
      assert.deepEqual(mended, { is: 'existing', providerId: '1', ours: true })
      assert.equal(fake.joined!('ada@example.com'), true)
      assert.equal(fake.confirmations('ada@example.com'), 1)
      assert.deepEqual(server.asked.findLast(({ method }) => method === 'PUT')?.json, {
        ids: [1],
        action: 'add',
        target_list_ids: [2],
        status: 'unconfirmed',
      })
    }
  })

  test('an opt-in mail that was certainly not sent is sent later, one that may have been is not sent again', {
    skip: !isSlow && 'it runs in .ci/run',
  }, async t => {
    for (const [what, is, mails] of [
      ['503', 'unclear', 1],
      ['429', 'unclear', 1],
      ['403 of unknown wording', 'misconfigured', 1],
      ['hang after', 'existing', 1],
      ['500 after', 'existing', 1],
      ['500 before', 'existing', 0],
    ] as const) {
      const { fake, server, provider } = await started(t)
      fake.lists.delete(2)
      await provider.createContact(ada, false, never)
      fake.lists.set(2, 'double')
      // Create, find, look, add, and then the mail.
      server.next('slow', 'slow', 'slow', 'slow', what)
      assert.equal((await provider.createContact(ada, true, never)).is, is, what)
      if (is !== 'existing')
        while ((await provider.createContact(ada, true, never)).is !== 'existing') await passes(200)
      assert.equal(fake.confirmations('ada@example.com'), mails, what)
    }
  })

  test('in doubt, listmonk asked for the confirmation at the creation, and nobody asks again', async t => {
    const { fake, server, provider } = await started(t)
    server.next('reset after')
    assert.equal((await provider.createContact(ada, false, never)).is, 'unclear')
    assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', providerId: '1', ours: true })
    assert.equal(fake.confirmations('ada@example.com'), 1)
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
      fake.lists.set(2, 'double')
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

  test('a 400 drops a signup only in the words that the server has for an address', async t => {
    const blocked = await started(t)
    assert.deepEqual(await blocked.provider.createContact(contactOf('ada@blocked.example'), false, never), {
      is: 'refused',
      reason: 'its domain is blocked there',
    })
    assert.deepEqual(callsOf(blocked.server), ['POST /api/subscribers', 'GET /api/config', 'GET /api/lang/de'])

    const refused = { status: 400, body: { message: 'Ungültige E-Mail.' } }
    const rows: [said: Said, is: string, config?: Said | undefined, pack?: Said][] = [
      [{ status: 403, body: { message: 'invalid API credentials' } }, 'misconfigured'],
      [{ status: 403, body: { message: 'Zugriff verweigert: lists' } }, 'misconfigured'],
      [{ status: 404, body: { message: 'Not Found' } }, 'misconfigured'],
      [{ status: 422, body: { message: 'Ungültige E-Mail.' } }, 'misconfigured'],
      [{ status: 429, body: { message: 'Too many' } }, 'unreached'],
      [{ status: 400, body: { message: 'Request blocked by policy' } }, 'misconfigured'],
      [{ status: 400, body: { message: 'Unmarshal type error: expected=[]int, got=string' } }, 'misconfigured'],
      // Words of another language, of another message, or not all of them.
      [{ status: 400, body: { message: 'Invalid email.' } }, 'misconfigured'],
      [{ status: 400, body: { message: 'E-Mail existiert bereits.' } }, 'misconfigured'],
      [{ status: 400, body: { message: 'Ungültige E-Mail. (policy)' } }, 'misconfigured'],
      [{ status: 400, body: '<html>Bad Request</html>' }, 'misconfigured'],
      [{ status: 400, body: {} }, 'misconfigured'],
      [refused, 'refused'],
      [refused, 'misconfigured', { status: 403, body: { message: 'No' } }],
      [refused, 'misconfigured', { status: 200, body: { data: {} } }],
      [refused, 'misconfigured', undefined, { status: 400, body: { message: 'Unknown language.' } }],
      [refused, 'misconfigured', undefined, { status: 200, body: { data: {} } }],
      [refused, 'unreached', { status: 500, body: {} }],
      [refused, 'unreached', undefined, { status: 503, body: {} }],
    ]
    for (const [said, is, config, pack] of rows) {
      const { provider } = await started(t, {}, ({ path }) =>
        path === '/api/config' ? config : path.startsWith('/api/lang') ? pack : said,
      )
      assert.equal((await provider.createContact(ada, false, never)).is, is, JSON.stringify([said, config, pack]))
    }
  })

  test('a language pack of its longest language is read', async t => {
    const long = { 'subscribers.invalidEmail': 'Nein', 'the longest': 'ക'.repeat(92_000 / 3) }
    const { provider } = await started(t, {}, ({ path }) => {
      if (path === '/api/config') return undefined
      if (path.startsWith('/api/lang')) return { status: 200, body: { data: long } }
      return { status: 400, body: { message: 'Nein' } }
    })
    assert.equal((await provider.createContact(ada, false, never)).is, 'refused')
  })

  test('a mail without its template waits until the template is there, one without its subscriber does not', async t => {
    const { fake, provider } = await started(t)
    const mail = (contact: Partial<Contact> = {}) =>
      provider.automation!.deliver({ ...event, contact: { ...ada, ...contact } }, never)
    for (const contact of [{}, { providerId: '1' }]) assert.equal((await mail(contact)).is, 'refused')
    await provider.createContact(ada, false, never)
    fake.templates.delete(5)
    assert.equal((await mail()).is, 'misconfigured')
    fake.templates.add(5)
    assert.equal((await mail()).is, 'delivered')
    const none = await started(t, { LISTMONK_TEMPLATE_ID: '' })
    assert.equal(none.provider.automation, null)
  })

  test('the check looks at the API user, every list and the template', async t => {
    const rows: [(fake: ListmonkFake) => void, RegExp | null][] = [
      [() => {}, null],
      [fake => fake.lists.delete(2), /^look at list 2: answered with 400/],
      [fake => (fake.granted = new Set([1, 2])), null],
      [fake => (fake.granted = new Set([1])), /^the API user lacks list:manage for list 2$/],
      [fake => (fake.permissions = ['tx:send']), /^the API user lacks subscribers:manage, subscribers:get$/],
      [fake => (fake.permissions = ['subscribers:get_all', 'subscribers:manage']), null],
      [fake => fake.templates.delete(5), /^look at template 5: answered with 400/],
    ]
    for (const [breakIt, why] of rows) {
      const { fake, provider } = await started(t)
      breakIt(fake)
      const failure = await provider.check(never)
      if (why === null) assert.equal(failure, null)
      else assert.match(failure?.is === 'misconfigured' ? failure.why : '', why)
    }
    const none = await started(t, { LISTMONK_TEMPLATE_ID: '' })
    assert.equal(await none.provider.check(never), null)
    assert.deepEqual(callsOf(none.server), ['GET /api/profile', 'GET /api/lists/1', 'GET /api/lists/2'])
    for (const data of [{ user_role: { id: 1, permissions: [] }, list_role: null }, {}]) {
      const { provider } = await started(t, {}, ({ path }) =>
        path === '/api/profile' ? { status: 200, body: { data } } : undefined,
      )
      assert.equal(await provider.check(never), null, 'the owner may do everything')
    }
    const silent = await started(t, {}, ({ path }) =>
      path === '/api/tx' ? { status: 403, body: { message: 'permission denied: tx:send' } } : undefined,
    )
    assert.equal((await silent.provider.check(never))?.is, 'misconfigured')
  })

  test('confirmed on behalf of its owner, nobody is asked; attributes go beside our mark', async t => {
    const settings = { LISTMONK_PRECONFIRM: 'true', LISTMONK_ATTRIBUTES: 'source=landing page, plan=a=b' }
    const { fake, server, provider } = await started(t, { ...settings, PROVIDER_EXISTING: 'join' })
    fake.lists.delete(2)
    await provider.createContact(ada, false, never)
    fake.lists.set(2, 'double')
    await provider.createContact(ada, true, never)
    fake.had('old@example.com')
    await provider.createContact(contactOf('old@example.com'), false, never)
    const [{ json }] = server.asked as readonly [Asked]
    assert.deepEqual(json.attribs, { source: 'landing page', plan: 'a=b', waitlist: ada.id })
    assert.equal(json.preconfirm_subscriptions, true)
    assert.ok(
      server.asked.every(({ path }) => !path.endsWith('/optin')),
      'it would ask for other lists too',
    )
    for (const email of ['ada@example.com', 'old@example.com']) {
      const { lists } = fake.kept(email) as { lists: { subscription_status: string }[] }
      assert.deepEqual(
        lists.map(each => each.subscription_status),
        ['confirmed', 'confirmed'],
      )
      assert.equal(fake.confirmations(email), 0)
    }
  })

  test('attributes that are none, come twice, or take our mark stop the start', async () => {
    for (const text of ['source', 'source=web,source=app', 'a=1,,b=2', 'waitlist=1']) {
      const result = await readConfig({
        PROVIDER: 'listmonk',
        ...listmonkSettings('http://127.0.0.1'),
        LISTMONK_ATTRIBUTES: text,
      })
      assert.ok('mistakes' in result && result.mistakes.length === 1, text)
      assert.match(result.mistakes[0]!, /^LISTMONK_ATTRIBUTES must /)
    }
  })

  describe('PROVIDER_EXISTING=join', () => {
    const joining = (t: TestContext) => started(t, { PROVIDER_EXISTING: 'join' })
    const on = (fake: ListmonkFake, email: string) => {
      const { lists } = fake.kept(email) as { lists: { id: number; subscription_status: string }[] }
      return Object.fromEntries(lists.map(each => [each.id, each.subscription_status]))
    }

    test('adds to what is missing, as unconfirmed, and asks for the confirmation once', async t => {
      const { fake, server, provider } = await joining(t)
      fake.put('ada@example.com', 'enabled', { 1: 'confirmed' })
      assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
      assert.deepEqual(on(fake, 'ada@example.com'), { 1: 'confirmed', 2: 'unconfirmed' })
      assert.equal(fake.confirmations('ada@example.com'), 1)
      assert.deepEqual(callsOf(server), [
        'POST /api/subscribers',
        'GET /api/subscribers',
        'GET /api/lists/2',
        'PUT /api/subscribers/lists',
        'POST /api/subscribers/1/optin',
      ])
    })

    test('leaves alone who is on all lists, who left one, and whom listmonk blocks', async t => {
      const rows: [string, Record<number, string>][] = [
        ['enabled', { 1: 'confirmed', 2: 'confirmed' }],
        ['enabled', { 1: 'unconfirmed', 2: 'unconfirmed' }],
        ['enabled', { 1: 'unsubscribed' }],
        ['enabled', { 1: 'confirmed', 2: 'unsubscribed' }],
        ['blocklisted', {}],
        ['disabled', {}],
      ]
      for (const [status, lists] of rows) {
        const { fake, server, provider } = await joining(t)
        fake.put('ada@example.com', status, lists)
        for (const doubt of [false, true]) {
          assert.equal((await provider.createContact(ada, doubt, never)).is, 'existing')
        }
        assert.deepEqual(on(fake, 'ada@example.com'), lists)
        const changing = server.asked.filter(({ method, path }) => method !== 'GET' && path !== '/api/subscribers')
        assert.deepEqual(changing, [], JSON.stringify([status, lists]))
      }
    })

    test('leaves alone whom the API user may not see, or not change', async t => {
      for (const sees of [false, true]) {
        const fake = listmonkFake()
        fake.lists.set(7, 'single')
        fake.put('ada@example.com', 'enabled', { 7: 'unconfirmed' })
        const server = await startVendor(t, asked => {
          // With `subscribers:get_all` it sees those of all lists.
          fake.granted = sees && asked.method === 'GET' ? null : new Set([1, 2])
          return fake.answer(asked)
        })
        const env = { ...listmonkSettings(server.url), PROVIDER_EXISTING: 'join' }
        const provider = await opened(t, { vendor: 'listmonk' }, env)
        assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
        assert.deepEqual(on(fake, 'ada@example.com'), { 7: 'unconfirmed' })
        assert.equal(server.asked.at(-1)?.method, sees ? 'PUT' : 'GET')
      }
    })

    test('a list that is gone or forbidden is our mistake, and leaves no doubt', async t => {
      for (const granted of [null, new Set([1])]) {
        const { fake, provider } = await joining(t)
        fake.put('ada@example.com', 'enabled', { 1: 'confirmed' })
        fake.granted = granted
        if (granted === null) fake.lists.delete(2)
        const creation = await provider.createContact(ada, false, never)
        assert.ok(creation.is === 'misconfigured' && !creation.tookEffect, JSON.stringify(creation))
      }
    })
  })
})

test('whom the API user does not see is not called absent', async t => {
  const fake = listmonkFake()
  fake.granted = new Set([1, 2])
  fake.permissions = ['subscribers:get', 'subscribers:manage']
  fake.put('seen@example.com', 'enabled', { 1: 'confirmed' })
  fake.had('hidden@example.com')
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, { vendor: 'listmonk' }, listmonkSettings(server.url))
  const said = await provider.remove('hidden@example.com', never)
  assert.ok(said.is === 'by hand' && said.how.includes('API user'), JSON.stringify(said))
  assert.deepEqual(await provider.remove('seen@example.com', never), { is: 'removed' })
  assert.deepEqual([fake.count('hidden@example.com'), fake.count('seen@example.com')], [1, 0])
})

test('whom the name of another one hides is to be looked for by hand', async t => {
  const fake = listmonkFake()
  fake.had('ada@example.com')
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, { vendor: 'listmonk' }, listmonkSettings(server.url))
  await provider.createContact(contactOf('bob@example.com', { name: 'ada@example.com' }), false, never)
  assert.equal((await provider.remove('ada@example.com', never)).is, 'by hand')
  assert.deepEqual([fake.count('ada@example.com'), fake.count('bob@example.com')], [1, 1])
})
