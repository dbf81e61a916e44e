import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Creation } from '../../src/waitlist/ports/provider.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'
import { assertDocumented, exchanged } from '../harness/wire.ts'
import { buttondownCalls, errorCodes } from './buttondown.contract.ts'
import { buttondownFake, buttondownMore, buttondownSettings, EMAIL } from './buttondown.fake.ts'

const vendor = 'buttondown'
const never = new AbortController().signal
const ada = contactOf('ada@example.com')
const event = eventOf({ ...ada, providerId: 'sub_1' })

providerContract({
  vendor,
  settings: buttondownSettings,
  wrongKey: { BUTTONDOWN_API_KEY: 'another-key' },
  wrongSetting: { BUTTONDOWN_TAGS: 'forbidden' },
  fake: () => buttondownFake(),
  joining: { settings: buttondownMore, members: ['tags'] },
  refused: 'blocked@example.com',
})

/** A provider whose vendor always says the same. */
async function saying(t: TestContext, said: Said, change: Record<string, string> = {}) {
  const server = await startVendor(t, () => said)
  return { server, provider: await opened(t, { vendor }, { ...buttondownSettings(server.url), ...change }) }
}

test("our requests, and the fake's answers, are those of the vendor's own contract", async t => {
  const said = await exchanged(t, buttondownFake().answer, async url => {
    for (const change of [{}, { ...buttondownMore, BUTTONDOWN_DOUBLE_OPT_IN: 'false', PROVIDER_EXISTING: 'join' }]) {
      const provider = await opened(t, { vendor }, { ...buttondownSettings(url), ...change })
      await provider.check(never)
      await provider.createContact(ada, false, never)
      await provider.createContact(ada, true, never)
      await provider.createContact(contactOf('bob@example.com'), false, never)
      await provider.createContact(contactOf('suspect@example.com'), false, never)
      await provider.createContact(contactOf('blocked@example.com'), false, never)
      await provider.automation!.deliver(eventOf(ada), never)
    }
  })
  for (const [request, one] of said) assertDocumented(buttondownCalls, request, one)
  assert.ok(said.some(([{ method }]) => method === 'PATCH'))
  for (const [{ method, path, headers }] of said) {
    assert.equal(headers['x-api-version'], '2026-04-01')
    // A creation has none: it would repeat a refusal that is over by now.
    assert.equal(headers['x-idempotency-key'] !== undefined, method === 'POST' && path.includes('/emails/'))
  }
})

test('a subscriber has the name and our mark in its metadata, the tags, and is asked to confirm unless told otherwise', async t => {
  const fake = buttondownFake()
  const server = await startVendor(t, fake.answer)
  const asking = await opened(t, { vendor }, buttondownSettings(server.url))
  const change = { BUTTONDOWN_TAGS: 'Early access, Bêta', BUTTONDOWN_DOUBLE_OPT_IN: 'false' }
  const plain = await opened(t, { vendor }, { ...buttondownSettings(server.url), ...change })
  await asking.createContact(ada, false, never)
  await plain.createContact(contactOf('bob@example.com', { name: 'Bob' }), false, never)
  const metadata = { name: 'Ada King Lovelace', waitlist_id: ada.id }
  assert.deepEqual(server.asked[0]!.json, { email_address: 'ada@example.com', metadata })
  assert.deepEqual(server.asked[1]!.json, {
    email_address: 'bob@example.com',
    type: 'regular',
    tags: ['Early access', 'Bêta'],
    metadata: { name: 'Bob', waitlist_id: ada.id },
  })
})

test('the page that subscribers come from is told', async t => {
  const server = await startVendor(t, buttondownFake().answer)
  const provider = await opened(t, { vendor }, { ...buttondownSettings(server.url), ...buttondownMore })
  assert.equal((await provider.createContact(ada, false, never)).is, 'created')
  assert.equal(server.asked[0]!.json.referrer_url, 'https://example.com/launch/?from=waitlist')
})

test('a known subscriber keeps its tags and stays unsubscribed when it joins', async t => {
  const fake = buttondownFake()
  fake.had('ada@example.com')
  const server = await startVendor(t, fake.answer)
  const env = { ...buttondownSettings(server.url), ...buttondownMore, PROVIDER_EXISTING: 'join' }
  const provider = await opened(t, { vendor }, env)
  await provider.createContact(ada, false, never)
  const { tags, type } = fake.kept('ada@example.com') as Record<string, unknown>
  assert.deepEqual([tags, type], [['customers', 'early', 'friends'], 'unsubscribed'])
  assert.ok(server.asked.every(({ headers }) => headers['x-buttondown-collision-behavior'] === undefined))
  // It has them all now.
  await provider.createContact(ada, false, never)
  assert.equal(server.asked.filter(({ method }) => method === 'PATCH').length, 1)
})

for (const [what, method, said] of [
  ['cannot be found', 'GET', { status: 404, body: { code: 'not_found', detail: 'Not found.' } }],
  ['the firewall blocks', 'PATCH', { status: 400, body: { code: 'firewall_blocked', detail: 'Blocked.' } }],
  ['has an address that is not valid', 'PATCH', { status: 400, body: { code: 'email_invalid', detail: 'Invalid.' } }],
] as const) {
  test(`a known subscriber that ${what} stays known, and nothing waits for it`, async t => {
    const fake = buttondownFake()
    fake.had('ada@example.com')
    const server = await startVendor(t, asked => (asked.method === method ? said : fake.answer(asked)))
    const env = { ...buttondownSettings(server.url), ...buttondownMore, PROVIDER_EXISTING: 'join' }
    const provider = await opened(t, { vendor }, env)
    assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
    const doubted = await provider.createContact(ada, true, never)
    assert.ok(doubted.is === 'existing' && doubted.ours === false, JSON.stringify(doubted))
    assert.equal(server.asked.at(-1)?.method, method)
  })
}

test('a known subscriber waits for tags that Buttondown refuses', async t => {
  const fake = buttondownFake()
  fake.had('ada@example.com')
  const no = { status: 400, body: { code: 'tag_invalid', detail: 'Your plan has no tags.' } }
  const server = await startVendor(t, asked => (asked.method === 'PATCH' ? no : fake.answer(asked)))
  const env = { ...buttondownSettings(server.url), ...buttondownMore, PROVIDER_EXISTING: 'join' }
  const provider = await opened(t, { vendor }, env)
  assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured')
})

describe('the check', () => {
  for (const [what, change, asked] of [
    ['the key alone', { BUTTONDOWN_EMAIL_ID: '' }, ['/v1/accounts/me']],
    ['a mail, however long', {}, ['/v1/accounts/me', `/v1/emails/${EMAIL}`]],
    ['tags', { BUTTONDOWN_EMAIL_ID: '', BUTTONDOWN_TAGS: 'early' }, ['/v1/accounts/me', '/v1/tags']],
  ] as const) {
    test(`tries ${what}`, async t => {
      const server = await startVendor(t, buttondownFake().answer)
      const provider = await opened(t, { vendor }, { ...buttondownSettings(server.url), ...change })
      assert.equal(await provider.check(never), null)
      assert.deepEqual(
        server.asked.map(({ method, path }) => [method, path]),
        asked.map(path => ['GET', path]),
      )
    })
  }

  for (const [what, change, path, why] of [
    ['a mail that is not there', { BUTTONDOWN_EMAIL_ID: 'em_other' }, '', /^check the mail: answered with 404/],
    [
      'tags that the plan does not have',
      { BUTTONDOWN_TAGS: 'early' },
      '/v1/tags',
      /^check the tags: .*feature_disabled/,
    ],
  ] as const) {
    test(`names ${what}`, async t => {
      const fake = buttondownFake()
      const no = { status: 403, body: { code: 'feature_disabled', detail: 'Your plan has no tags.' } }
      const server = await startVendor(t, asked => (asked.path === path ? no : fake.answer(asked)))
      const provider = await opened(t, { vendor }, { ...buttondownSettings(server.url), ...change })
      const failure = await provider.check(never)
      assert.ok(failure?.is === 'misconfigured' && why.test(failure.why), JSON.stringify(failure))
    })
  }
})

describe('a creation', () => {
  const rows: [number, string, Creation['is']][] = [
    [400, 'email_already_exists', 'existing'],
    [400, 'subscriber_already_exists', 'existing'],
    [400, 'email_invalid', 'refused'],
    [400, 'email_blocked', 'refused'],
    [400, 'subscriber_blocked', 'unreached'],
    [400, 'subscriber_suppressed', 'refused'],
    [400, 'rate_limited', 'unreached'],
    [401, 'unauthorized', 'misconfigured'],
    [403, 'feature_disabled', 'misconfigured'],
    [403, 'email_blocked', 'misconfigured'],
    [409, '', 'unclear'],
    [400, 'constructor', 'misconfigured'],
  ]
  for (const [status, code, is] of rows) {
    test(`answered with ${status} ${code} is ${is}`, async t => {
      const { provider } = await saying(t, { status, body: code === '' ? '' : { code, detail: 'Something.' } })
      assert.equal((await provider.createContact(ada, false, never)).is, is)
    })
  }

  test('that the firewall blocks is kept, and keeps nobody else waiting', async t => {
    const { provider } = await saying(t, { status: 400, body: { code: 'subscriber_blocked', detail: 'Blocked.' } })
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'unreached' && creation.alone === true, JSON.stringify(creation))
    assert.match(creation.why, /subscriber_blocked/)
  })

  test('that is refused says nothing of what an address did before', async t => {
    for (const code of ['email_blocked', 'subscriber_suppressed']) {
      const { provider } = await saying(t, { status: 400, body: { code, detail: 'Unsubscribed last year.' } })
      const refused = { is: 'refused', reason: 'it is not accepted there' }
      assert.deepEqual(await provider.createContact(ada, false, never), refused)
    }
  })

  test('answered with any other documented code is our mistake', async t => {
    const others = errorCodes.filter(code => !rows.some(row => row[1] === code))
    assert.equal(others.length, 10)
    for (const code of others) {
      const { provider } = await saying(t, { status: 400, body: { code, detail: 'Something.' } })
      assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured', code)
    }
  })

  test('over the daily limit is kept for later, though that is a 400', async t => {
    const fake = buttondownFake(1)
    const server = await startVendor(t, fake.answer)
    const provider = await opened(t, { vendor }, buttondownSettings(server.url))
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    const second = await provider.createContact(contactOf('bob@example.com'), false, never)
    assert.ok(second.is === 'unreached' && /a day/.test(second.why), JSON.stringify(second))
    assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
  })

  test('answered with 429 waits as long as it says', async t => {
    const headers = { 'retry-after': '45', 'x-ratelimit-reset': '1735776060' }
    const { provider } = await saying(t, { status: 429, body: { detail: 'Slow down.' }, headers })
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'unreached' && creation.retryAfter === 45_000, JSON.stringify(creation))
  })

  for (const [places, is] of [
    [[['body', 'input', 'email_address']], 'refused'],
    [[['body', 'input', 'tags', 0]], 'misconfigured'],
    [
      [
        ['body', 'input', 'email_address'],
        ['body', 'input', 'tags', 0],
      ],
      'misconfigured',
    ],
    [[], 'misconfigured'],
  ] as const) {
    test(`answered with 422 about ${JSON.stringify(places)} is ${is}`, async t => {
      const detail = places.map(loc => ({ type: 'value_error', loc, msg: 'Not valid.' }))
      const { provider } = await saying(t, { status: 422, body: { detail } })
      assert.equal((await provider.createContact(ada, false, never)).is, is)
    })
  }

  test('of an address that Buttondown cannot take is refused', async t => {
    const server = await startVendor(t, buttondownFake().answer)
    const provider = await opened(t, { vendor }, buttondownSettings(server.url))
    assert.equal((await provider.createContact(contactOf('ada#1@example.com'), false, never)).is, 'refused')
  })

  test('in doubt, an existing subscriber is ours by its mark alone', async t => {
    const fake = buttondownFake()
    const server = await startVendor(t, fake.answer)
    const provider = await opened(t, { vendor }, buttondownSettings(server.url))
    await provider.createContact(ada, false, never)
    const ours = await provider.createContact(ada, true, never)
    assert.deepEqual(ours, { is: 'existing', providerId: 'sub_00000000000000000000000001', ours: true })
    // Somebody else made it a moment ago.
    const other = contactOf('ada@example.com', { id: '01981d4f-3c00-7c4e-9d0a-000000000000' })
    const theirs = await provider.createContact(other, true, never)
    assert.deepEqual(theirs, { ...ours, ours: false })
  })

  test('in doubt, looks for any address', async t => {
    const { server, provider } = await saying(t, { status: 400, body: { code: 'email_already_exists', detail: '' } })
    await provider.createContact(contactOf('a%41?b#c@example.com'), true, never)
    assert.deepEqual([server.asked[1]!.path, server.asked[1]!.query], ['/v1/subscribers/a%41?b#c@example.com', {}])
  })

  test('in doubt, a lookup that fails leaves the doubt', async t => {
    const fake = buttondownFake()
    fake.had('ada@example.com')
    const server = await startVendor(t, fake.answer)
    const provider = await opened(t, { vendor }, buttondownSettings(server.url))
    server.next('slow', '500 before')
    assert.equal((await provider.createContact(ada, true, never)).is, 'unreached')
    server.next('slow', '429')
    assert.equal((await provider.createContact(ada, true, never)).is, 'unreached')
  })
})

describe('the automation', () => {
  test("is Buttondown's own, and we start none, without a mail", async t => {
    const { provider } = await saying(t, { status: 200 }, { BUTTONDOWN_EMAIL_ID: '' })
    assert.equal(provider.automation, null)
  })

  test('sends one mail to the subscriber, under the id of the event', async t => {
    const { server, provider } = await saying(t, { status: 200, body: {} })
    assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    const [{ method, path, headers, json }] = server.asked as [Asked]
    assert.deepEqual([method, path], ['POST', `/v1/subscribers/sub_1/emails/${EMAIL}`])
    assert.equal(headers['x-idempotency-key'], event.id)
    assert.equal(json, undefined)
    const { id, name, state, email, createdAt } = event.contact
    await provider.automation!.deliver({ ...event, contact: { id, name, state, email, createdAt } }, never)
    assert.equal(server.asked[1]!.path, `/v1/subscribers/ada@example.com/emails/${EMAIL}`)
  })

  for (const [status, body, is] of [
    [404, { detail: 'Not found.' }, 'misconfigured'],
    [400, { detail: 'It is no draft.' }, 'refused'],
    [403, { detail: 'No.' }, 'misconfigured'],
    [409, '', 'unclear'],
    [200, '', 'unclear'],
    [200, [], 'unclear'],
  ] as const) {
    test(`answered with ${status} ${JSON.stringify(body)} is ${is}`, async t => {
      const { provider } = await saying(t, { status, body })
      assert.equal((await provider.automation!.deliver(event, never)).is, is)
    })
  }
})
