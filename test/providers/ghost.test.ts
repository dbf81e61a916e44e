import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { contactOf, providerContract } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { said } from './ghost.contract.ts'
import { ARCHIVED, anotherSecret, DEFAULT, EARLY, ghostFake, ghostSettings } from './ghost.fake.ts'
import { callsOf, starting } from './started.ts'

const joining = { GHOST_LABELS: 'Early access', GHOST_NEWSLETTER_IDS: EARLY }

providerContract({
  vendor: 'ghost',
  settings: ghostSettings,
  wrongKey: { GHOST_ADMIN_API_KEY: anotherSecret },
  wrongSetting: { GHOST_NEWSLETTER_IDS: '0123456789abcdef01234567' },
  fake: ghostFake,
  refused: 'refused@example',
  joining: { settings: joining, members: ['labels'] },
})

const never = new AbortController().signal
const ada = contactOf('ada@example.com')
const started = starting('ghost', ghostFake, ghostSettings)
const MEMBERS = '/ghost/api/admin/members/'
const note = `waitlist ${ada.id}`

/** What the fake keeps, as names and ids. */
const keptBy = (fake: ReturnType<typeof ghostFake>, email: string) => {
  const { labels, newsletters } = fake.kept(email) as Record<'labels' | 'newsletters', { id: string; name: string }[]>
  return { labels: labels.map(({ name }) => name), newsletters: newsletters.map(({ id }) => id) }
}

const payloadOf = ({ headers }: Asked) =>
  JSON.parse(Buffer.from(headers.authorization!.split('.')[1]!, 'base64url').toString())

describe('Ghost', { timeout: 60_000 }, () => {
  test('what is sent, with no setting but the least, and with all', async t => {
    const { server, provider } = await started(t)
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
    const least = { email: 'ada@example.com', name: 'Ada King Lovelace', note }
    assert.deepEqual([server.asked[0]!.query, server.asked[0]!.json], [{}, { members: [least] }])
    assert.equal(server.asked[0]!.headers['accept-version'], 'v6.0')

    const all = await started(t, {
      GHOST_LABELS: 'Early access, Beta',
      GHOST_NEWSLETTER_IDS: EARLY,
      GHOST_EMAIL_TYPE: 'subscribe',
    })
    assert.equal((await all.provider.createContact(ada, false, never)).is, 'created')
    const [{ query, json }] = all.server.asked as [Asked]
    const more = { labels: ['Early access', 'Beta'], newsletters: [{ id: EARLY }] }
    assert.deepEqual(
      [query, json],
      [{ send_email: 'true', email_type: 'subscribe' }, { members: [{ ...least, ...more }] }],
    )
    assert.deepEqual(all.fake.mailed, ['ada@example.com subscribe'])
  })

  test('its address may have a path, and slashes at the end', async t => {
    const { server, provider } = await started(t, {}, ({ path }) => ({ status: 404, body: { path } }))
    await provider.createContact(ada, false, never)
    const below = await started(t, { GHOST_BASE_URL: `${server.url}/blog//` })
    await below.provider.createContact(ada, false, never)
    assert.deepEqual(
      server.asked.map(({ path }) => path),
      [MEMBERS, `/blog${MEMBERS}`],
    )
  })

  test('every call has a token of its own, for five minutes from now', async t => {
    const { server, provider } = await started(t, { GHOST_NEWSLETTER_IDS: EARLY })
    const now = Math.floor(Date.now() / 1_000)
    t.mock.timers.enable({ apis: ['Date'], now: now * 1_000 })
    await provider.createContact(ada, false, never)
    t.mock.timers.setTime((now + 301) * 1_000)
    assert.equal(await provider.check(never), null)
    assert.deepEqual(
      server.asked.map(payloadOf),
      [now, now + 301, now + 301].map(iat => ({ iat, exp: iat + 300, aud: '/admin/' })),
    )
  })

  test('a clock that is less than five minutes slow, or fast, does no harm; a slower one is told by name', async t => {
    for (const ahead of [-3_600, -299, 0, 290]) {
      const { fake, provider } = await started(t)
      fake.ahead = ahead
      assert.equal((await provider.createContact(ada, false, never)).is, 'created', String(ahead))
    }
    const { fake, provider } = await started(t)
    fake.ahead = 301
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'misconfigured')
    assert.match(creation.why, /Invalid token: jwt expired/)
  })

  test('a token is never in what is said to the log, even if the answer repeats it', async t => {
    let token = ''
    const repeating = ({ headers }: Asked): Said => {
      token = headers.authorization!.split(' ')[1]!
      return { status: 401, body: { errors: [{ message: `Invalid: ${token} (${headers.authorization})` }] } }
    }
    const { provider } = await started(t, {}, repeating)
    const failures = [await provider.createContact(ada, true, never), await provider.check(never)]
    for (const failure of failures) {
      assert.ok(failure?.is === 'misconfigured')
      assert.match(failure.why, /Invalid/)
      for (const part of [token, ...token.split('.')]) assert.ok(!failure.why.includes(part), failure.why)
    }
  })

  test('a name that begins with a comma, which Ghost does not take, loses it', async t => {
    for (const [name, kept] of [
      [', Ada', 'Ada'],
      [',,', ''],
      ['King, Ada', 'King, Ada'],
    ] as const) {
      const { fake, provider } = await started(t)
      assert.equal((await provider.createContact({ ...ada, name }, false, never)).is, 'created', name)
      assert.equal((fake.kept('ada@example.com') as { name: string }).name, kept)
    }
  })

  const answers: readonly (readonly [keyof typeof said, number, string])[] = [
    ['known', 422, 'existing'],
    ['invalid', 422, 'refused'],
    ['tooLong', 422, 'refused'],
    ['comma', 422, 'misconfigured'],
    ['noNewsletter', 422, 'misconfigured'],
    ['known', 400, 'misconfigured'],
    ['invalid', 403, 'misconfigured'],
    ['notFound', 404, 'misconfigured'],
    ['unknownKey', 401, 'misconfigured'],
    ['noMail', 500, 'unclear'],
  ]
  for (const [what, status, is] of answers) {
    test(`a creation that is answered with ${status} and "${what}" is ${is}`, async t => {
      const { provider } = await started(t, {}, () => ({ status, body: { errors: [said[what]] } }))
      assert.equal((await provider.createContact(ada, false, never)).is, is)
    })
  }

  test('a 422 about the address is a refusal only with the texts that mean that', async t => {
    for (const context of ['Domain is blocked', 'Invalid Email domain list', '', null, ['Invalid Email']]) {
      const body = { errors: [{ ...said.invalid, context }] }
      const { provider } = await started(t, {}, () => ({ status: 422, body }))
      assert.equal((await provider.createContact(ada, false, never)).is, 'misconfigured', String(context))
    }
  })

  test('an address that is too long for Ghost is refused', async t => {
    const { provider } = await started(t)
    const long = contactOf(`${'a'.repeat(60)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(20)}.com`)
    assert.deepEqual(await provider.createContact(long, false, never), {
      is: 'refused',
      reason: 'it is not valid there',
    })
  })

  test('in doubt, ours carries our mark, whatever was written beside it; another contact of the address does not', async t => {
    const { fake, provider } = await started(t)
    await provider.createContact(ada, false, never)
    const member = fake.kept('ada@example.com') as { id: string; note: string }
    member.note = `${member.note}\nmet in Rome`
    const ours = await provider.createContact(ada, true, never)
    assert.deepEqual(ours, { is: 'existing', providerId: member.id, ours: true })
    const other = contactOf('ada@example.com', { id: '01981d4f-3c00-7c4e-9d0a-000000000000' })
    assert.deepEqual(await provider.createContact(other, true, never), { ...ours, ours: false })
  })

  test('in doubt, a member that cannot be seen is not ours', async t => {
    const unseen: Said = { status: 200, body: { members: [], meta: {} } }
    const { fake, provider } = await started(t, {}, ({ method }) => (method === 'GET' ? unseen : undefined))
    fake.had('ada@example.com')
    const creation = await provider.createContact(ada, true, never)
    assert.deepEqual(creation, { is: 'existing', ours: false })
  })

  test('an address with signs of the filter is found as it is', async t => {
    for (const email of ["o'brien@example.com", "'+(a,b)[c]~-:!#$%&*/=?^_`{|}@example.com"]) {
      const { provider } = await started(t)
      const contact = contactOf(email)
      assert.equal((await provider.createContact(contact, false, never)).is, 'created', email)
      const again = await provider.createContact(contact, true, never)
      assert.ok(again.is === 'existing' && again.ours === true, email)
    }
  })

  test('a search that fails is returned as it failed', async t => {
    for (const [status, is] of [
      [403, 'misconfigured'],
      [400, 'misconfigured'],
      [500, 'unreached'],
      [503, 'unreached'],
      [200, 'unreached'],
    ] as const) {
      const { fake, provider } = await started(t, {}, ({ method }) =>
        method === 'GET' ? { status, body: {} } : undefined,
      )
      fake.had('ada@example.com')
      assert.equal((await provider.createContact(ada, true, never)).is, is, String(status))
    }
  })

  test('a mail that cannot be sent leaves doubt; the member is ours, and no mail is sent later', async t => {
    const { fake, provider } = await started(t, { GHOST_EMAIL_TYPE: 'subscribe' })
    fake.mail = false
    assert.equal((await provider.createContact(ada, false, never)).is, 'unclear')
    fake.mail = true
    const again = await provider.createContact(ada, true, never)
    assert.ok(again.is === 'existing' && again.ours === true)
    assert.deepEqual(fake.mailed, [])
  })

  test('an archived newsletter, which is left out without a word, is our mistake, and joined once it is back', async t => {
    const change = { GHOST_LABELS: 'Early access', GHOST_NEWSLETTER_IDS: `${EARLY},${ARCHIVED}` }
    const { fake, server, provider } = await started(t, change)
    for (const doubt of [false, true]) {
      const creation = await provider.createContact(ada, doubt, never)
      assert.ok(creation.is === 'misconfigured' && creation.tookEffect, JSON.stringify(creation))
      assert.match(creation.why, /not with every newsletter: are they active\?$/)
    }
    fake.newsletters.set(ARCHIVED, 'active')
    const last = await provider.createContact(ada, true, never)
    assert.ok(last.is === 'existing' && last.ours === true)
    assert.deepEqual(keptBy(fake, 'ada@example.com'), { labels: ['Early access'], newsletters: [EARLY, ARCHIVED] })
    // Only what it lacks, beside what it has of the same kind.
    const { json } = server.asked.findLast(({ method }) => method === 'PUT')!
    assert.deepEqual(Object.keys(json.members[0]), ['newsletters'])
  })

  test('a label that Ghost finds under another spelling is no mistake', async t => {
    // MySQL, by default, compares without accents.
    const { provider } = await started(t, { GHOST_LABELS: 'Ete' }, ({ method }) => {
      if (method !== 'POST') return undefined
      const member = { id: '6b02db73c3c90169769ff0fc', labels: [{ id: '1', name: 'Été' }], newsletters: [] }
      return { status: 201, body: { members: [member] } }
    })
    assert.equal((await provider.createContact(ada, false, never)).is, 'created')
  })

  test('an edit that fails leaves doubt about one of ours, however it failed', async t => {
    for (const [status, is] of [
      [400, 'misconfigured'],
      [404, 'misconfigured'],
      [500, 'unclear'],
      [503, 'unclear'],
    ] as const) {
      const failing = ({ method }: Asked) => (method === 'PUT' ? { status, body: {} } : undefined)
      const { provider } = await started(t, { GHOST_NEWSLETTER_IDS: `${DEFAULT},${ARCHIVED}` }, failing)
      await provider.createContact(ada, false, never)
      const creation = await provider.createContact(ada, true, never)
      assert.equal(creation.is, is, String(status))
      assert.equal('tookEffect' in creation, is === 'misconfigured')
    }
  })

  describe('who was there before and joins', () => {
    const old = 'old@example.com'
    const joinedBy = async (t: TestContext, change: Record<string, string>) => {
      const here = await started(t, { ...change, PROVIDER_EXISTING: 'join' })
      here.fake.had(old)
      const creation = await here.provider.createContact(contactOf(old), false, never)
      return { ...here, creation }
    }

    test('keeps its own labels, and is subscribed to nothing that it may have left', async t => {
      const { fake, creation } = await joinedBy(t, joining)
      assert.equal(creation.is, 'existing')
      assert.deepEqual(keptBy(fake, old), { labels: ['VIP', 'Early access'], newsletters: [DEFAULT] })
    })

    test('is not edited if it has them, however the label is written', async t => {
      const { server } = await joinedBy(t, { GHOST_LABELS: 'vip', GHOST_NEWSLETTER_IDS: DEFAULT })
      assert.deepEqual(callsOf(server), [`POST ${MEMBERS}`, `GET ${MEMBERS}`])
    })

    test('is not even looked for if no label is set', async t => {
      const { server } = await joinedBy(t, { GHOST_NEWSLETTER_IDS: EARLY })
      assert.deepEqual(callsOf(server), [`POST ${MEMBERS}`])
    })
  })

  test('the check tries the key, and looks for every newsletter among the active ones', async t => {
    const { fake, server, provider } = await started(t, { GHOST_NEWSLETTER_IDS: `${EARLY},${ARCHIVED}` })
    const failure = await provider.check(never)
    assert.ok(failure?.is === 'misconfigured')
    assert.equal(failure.why, `look at the newsletters: ${ARCHIVED} is not among the active ones`)
    fake.newsletters.set(ARCHIVED, 'active')
    assert.equal(await provider.check(never), null)
    assert.deepEqual(callsOf(server).slice(0, 2), [`GET ${MEMBERS}`, 'GET /ghost/api/admin/newsletters/'])
  })

  test('a key of another shape is refused at start, and not repeated', async () => {
    const [id, secret] = ghostSettings('').GHOST_ADMIN_API_KEY.split(':') as [string, string]
    for (const key of [
      id,
      secret,
      `${secret}:${id}`,
      `${id}:${secret}0`,
      `${id}:${secret.slice(1)}g`,
      '22444f78447824223cefc48062',
    ]) {
      const result = await readConfig({
        PROVIDER: 'ghost',
        GHOST_BASE_URL: 'https://example.com',
        GHOST_ADMIN_API_KEY: key,
      })
      assert.ok('mistakes' in result, key)
      assert.match(result.mistakes.join(), /^GHOST_ADMIN_API_KEY must be an Admin API key: 24 hexadecimal digits/)
      assert.ok(!result.mistakes.join().includes(key))
    }
  })
})
