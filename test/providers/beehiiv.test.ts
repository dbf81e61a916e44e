import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Source } from '../../src/waitlist/rules/contact.ts'
import { contactOf, eventOf, providerContract } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { AUTOMATION, beehiivFake, beehiivSettings, PUBLICATION, tags } from './beehiiv.fake.ts'
import { callsOf, starting } from './started.ts'

const joining = { BEEHIIV_TAGS: tags.join(', ') }

providerContract({
  vendor: 'beehiiv',
  settings: beehiivSettings,
  wrongKey: { BEEHIIV_API_KEY: 'another-key' },
  wrongSetting: { BEEHIIV_PUBLICATION_ID: 'pub_another' },
  fake: beehiivFake,
  joining: { settings: joining, members: ['tags'] },
})

const never = new AbortController().signal
const ada = contactOf('ada+1@example.com')
const ID = 'sub_00000001'
const started = starting('beehiiv', beehiivFake, beehiivSettings)
const sent = ({ method, path, json }: Asked) => [method, path.replace(`/publications/${PUBLICATION}`, ''), json]

describe('beehiiv', { timeout: 60_000 }, () => {
  test('what is sent, with no setting but the least', async t => {
    const { server, provider } = await started(t)
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'created', providerId: ID })
    const event = eventOf({ ...ada, providerId: ID })
    assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    assert.deepEqual(await provider.automation!.deliver(eventOf(ada), never), { is: 'delivered' })
    assert.deepEqual(server.asked.map(sent), [
      ['GET', '/subscriptions/by_email/ada+1@example.com', undefined],
      ['POST', '/subscriptions', { email: 'ada+1@example.com' }],
      ['POST', `/automations/${AUTOMATION}/journeys`, { subscription_id: ID }],
      ['POST', `/automations/${AUTOMATION}/journeys`, { email: 'ada+1@example.com' }],
    ])
    assert.ok(server.asked.every(({ headers }) => headers.authorization === 'Bearer beehiiv-key-of-the-test'))
  })

  test('what is sent with every setting: the name in its fields, and the tags in a call of their own', async t => {
    const { server, provider } = await started(t, {
      ...joining,
      BEEHIIV_FIRST_NAME_FIELD: 'First Name',
      BEEHIIV_LAST_NAME_FIELD: 'Last Name',
      BEEHIIV_DOUBLE_OPT_OVERRIDE: 'on',
      BEEHIIV_SEND_WELCOME_EMAIL: 'true',
    })
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    const cher = contactOf('cher@example.com', { name: 'Cher' })
    await provider.createContact(cher, false, never)
    const body = {
      email: 'ada+1@example.com',
      double_opt_override: 'on',
      send_welcome_email: true,
      custom_fields: [
        { name: 'First Name', value: 'Ada' },
        { name: 'Last Name', value: 'King Lovelace' },
      ],
    }
    assert.deepEqual(server.asked.slice(1, 3).map(sent), [
      ['POST', '/subscriptions', body],
      ['POST', `/subscriptions/${ID}/tags`, { tags }],
    ])
    assert.deepEqual(server.asked[4]!.json.custom_fields, [{ name: 'First Name', value: 'Cher' }])
  })

  test('a website in a source is the referring one, and a code is left out if it is refused', async t => {
    const referrals = async (source: Source, refuses = '') => {
      const refused: Said = {
        status: 400,
        body: { status: 400, statusText: 'x', errors: [{ code: 'X', message: 'x' }] },
      }
      const { server, provider } = await started(t, {}, ({ json }) =>
        json?.referral_code === refuses ? refused : undefined,
      )
      assert.equal((await provider.createContact({ ...ada, source }, false, never)).is, 'created')
      return server.asked.slice(1).map(({ json }) => [json.referral_code, json.referring_site])
    }
    assert.deepEqual(await referrals({ utm_source: 'newsletter', ref: 'abc1' }), [['abc1', undefined]])
    assert.deepEqual(await referrals({ utm_source: 'chatgpt.com', ref: 'abc1' }), [['abc1', 'chatgpt.com']])
    assert.deepEqual(await referrals({ ref: 'news.ycombinator.com' }), [[undefined, 'news.ycombinator.com']])
    assert.deepEqual(await referrals({ ref: 'no.bo dy' }, 'no.bo dy'), [
      ['no.bo dy', undefined],
      [undefined, undefined],
    ])
  })

  test('tags that could not be added leave doubt, and are added later, once the contact is seen to be ours', async t => {
    for (const [what, is] of [
      ['500 before', 'unclear'],
      ['503', 'unclear'],
      ['429', 'unclear'],
      ['403 of unknown wording', 'misconfigured'],
      ['truncated JSON', 'unclear'],
    ] as const) {
      const { fake, server, provider } = await started(t, joining)
      server.next('slow', 'slow', what)
      const creation = await provider.createContact(ada, false, never)
      assert.equal(creation.is, is, what)
      assert.equal('tookEffect' in creation, is === 'misconfigured', what)
      if (what === '429') continue
      server.behave()
      const again = await provider.createContact(ada, true, never)
      assert.deepEqual(again, { is: 'existing', providerId: ID, ours: true }, what)
      assert.ok(fake.joined!('ada+1@example.com'))
      assert.equal(fake.count('ada+1@example.com'), 1)
    }
  })

  test('in doubt, a subscription that is older than the signup is not ours, and keeps its tags', async t => {
    const { fake, server, provider } = await started(t, joining)
    fake.had('ada+1@example.com')
    assert.deepEqual(await provider.createContact(ada, true, never), { is: 'existing', providerId: ID, ours: false })
    assert.deepEqual(callsOf(server), [`GET /publications/${PUBLICATION}/subscriptions/by_email/ada+1@example.com`])
  })

  test('in doubt, a time that makes no sense tells nothing', async t => {
    for (const created of [undefined, null, '2025-07-18', 1e20]) {
      const { provider } = await started(t, {}, () => ({ status: 200, body: { data: { id: ID, created } } }))
      const creation = await provider.createContact(ada, true, never)
      assert.deepEqual(creation, { is: 'existing', providerId: ID, ours: undefined }, String(created))
    }
  })

  test('no 4xx means the address, since no code of an error is documented', async t => {
    for (const [status, code] of [
      [400, 'EMAIL_INVALID'],
      [400, 'INVALID_PARAMETER'],
      [404, 'NOT_FOUND'],
      [422, 'EMAIL_INVALID'],
    ] as const) {
      const body = { status, statusText: 'x', errors: [{ code, message: 'Email is invalid' }] }
      const { provider } = await started(t, {}, ({ method }) => (method === 'POST' ? { status, body } : undefined))
      assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured', code)
    }
  })

  test('a 429 asks to wait until the limit is reset', async t => {
    const headers = { 'ratelimit-limit': '180', 'ratelimit-remaining': '0' }
    const reset = Math.floor(Date.now() / 1_000) + 30
    const said: Said = { status: 429, body: {}, headers: { ...headers, 'ratelimit-reset': String(reset) } }
    const { provider } = await started(t, {}, () => said)
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'unreached' && creation.retryAfter !== undefined)
    assert.ok(creation.retryAfter > 20_000 && creation.retryAfter <= 31_000, String(creation.retryAfter))
  })

  for (const [status, body, is] of [
    [400, { errors: [] }, 'refused'],
    [404, { errors: [] }, 'misconfigured'],
    [200, { data: {} }, 'unclear'],
    [200, '', 'unclear'],
  ] as const) {
    test(`a start that is answered with ${status} ${JSON.stringify(body)} is ${is}`, async t => {
      const { provider } = await started(t, {}, () => ({ status, body }))
      assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, is)
    })
  }

  test('without an automation none is started', async t => {
    const { provider } = await started(t, { BEEHIIV_AUTOMATION_ID: '' })
    assert.equal(provider.automation, null)
  })

  test('the check looks at the publication, the automation and the fields, and says which is wrong', async t => {
    const good = await started(t, { BEEHIIV_FIRST_NAME_FIELD: 'First Name' })
    assert.equal(await good.provider.check(never), null)
    assert.deepEqual(
      good.server.asked.map(each => sent(each).slice(0, 2)),
      [
        ['GET', ''],
        ['GET', `/automations/${AUTOMATION}`],
        ['GET', '/custom_fields'],
      ],
    )
    for (const [change, why] of [
      [{ BEEHIIV_PUBLICATION_ID: 'pub_another' }, /^look at the publication: answered with 404/],
      [{ BEEHIIV_AUTOMATION_ID: 'aut_another' }, /^look at the automation: answered with 404/],
      [{ BEEHIIV_LAST_NAME_FIELD: 'Surname' }, /^look at the custom fields: there is no Surname$/],
    ] as const) {
      const { provider } = await started(t, change)
      const failure = await provider.check(never)
      assert.ok(failure?.is === 'misconfigured')
      assert.match(failure.why, why)
    }
    for (const change of [{ status: 'draft' }, { trigger_events: ['signup'] }]) {
      const { fake, provider } = await started(t)
      Object.assign(fake.automation, change)
      const failure = await provider.check(never)
      assert.ok(failure?.is === 'misconfigured' && /not live with the trigger "Add by API"/.test(failure.why))
    }
  })
})
