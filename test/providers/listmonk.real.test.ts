import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { contactOf, eventOf, opened } from '../contracts/provider.ts'
import { clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { runProgram, until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { startVendor } from '../harness/vendor.ts'
import { type Listmonk, listmonkVersion, noListmonk, PERMISSIONS, startListmonk } from './listmonk.server.ts'

const why = listmonkVersion === undefined ? noListmonk : isSlow ? false : 'only with WAITLIST_SLOW_TESTS'
const never = new AbortController().signal
const CONFIRM = 'Confirm subscription'
/** What sees and changes subscribers of all lists. */
const EVERYBODY = ['subscribers:get_all', 'subscribers:manage', 'lists:get_all', 'lists:manage_all']
const contact = (email: string) => contactOf(email, { id: crypto.randomUUID() })

/** What the fake says is what this says: the server itself, and our provider as the program opens it. */
describe(`listmonk itself, ${listmonkVersion ?? 'not here'}`, { skip: why, timeout: 240_000 }, () => {
  /** With one list of each kind, one that no API user of the test may manage, a template and an API user. */
  async function started(t: TestContext) {
    const server = await startListmonk(t)
    const listOf = async (name: string, optin: string): Promise<number> =>
      (await server.owner('POST', '/lists', { name, type: 'private', optin })).id
    const single = await listOf('Single', 'single')
    const double = await listOf('Double', 'double')
    const foreign = await listOf('Foreign', 'single')
    const { id: template } = await server.owner('POST', '/templates', {
      name: 'Welcome',
      type: 'tx',
      subject: 'Welcome',
      body: 'Hello {{ .Subscriber.Name }}',
    })
    const env: Record<string, string> = {
      LISTMONK_BASE_URL: server.url,
      LISTMONK_USER: 'waitlist',
      LISTMONK_TOKEN: await server.user('waitlist', [single, double]),
      LISTMONK_LIST_IDS: `${single},${double}`,
      LISTMONK_TEMPLATE_ID: String(template),
    }
    const openedWith = (more: Record<string, string> = {}) => opened(t, { vendor: 'listmonk' }, { ...env, ...more })
    return { server, single, double, foreign, env, openedWith, provider: await openedWith() }
  }

  /** The owner's look at a subscriber: its attributes, and the status on each of its lists. */
  async function kept({ owner }: Listmonk, email: string) {
    const { results } = await owner('GET', `/subscribers?per_page=all`)
    const found = results.filter((each: { email: string }) => each.email === email)
    assert.equal(found.length, 1, email)
    const lists = found[0].lists.map((each: { id: number; subscription_status: string }) => [
      each.id,
      each.subscription_status,
    ])
    return { ...found[0], on: Object.fromEntries(lists) as Record<number, string> }
  }
  const mailsTo = ({ mails }: Listmonk, email: string) =>
    mails.filter(({ to }) => to === email).map(({ subject }) => subject)

  /** Who signs up now is mailed after whoever was to be mailed before. */
  async function mailsHaveCome(server: Listmonk) {
    const { id } = await server.owner('POST', '/lists', { name: 'Last', type: 'private', optin: 'double' })
    const email = `last-${id}@example.com`
    await server.owner('POST', '/subscribers', { email, name: 'Last', status: 'enabled', lists: [id] })
    await until(() => mailsTo(server, email).length > 0)
  }

  test('new, known, in doubt; its mails; settings', async t => {
    const { server, single, double, provider, openedWith } = await started(t)
    assert.equal(await provider.check(never), null)
    const owner = { LISTMONK_USER: server.ownerUser.name, LISTMONK_TOKEN: server.ownerUser.token }
    assert.equal(await (await openedWith(owner)).check(never), null)

    const ada = contact('Ada+x@example.com')
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'created')
    assert.deepEqual(await provider.createContact(ada, false, never), { is: 'existing' })
    assert.deepEqual(await provider.createContact(ada, true, never), { ...creation, is: 'existing', ours: true })
    const other = await provider.createContact(contact('ada+x@example.com'), true, never)
    assert.deepEqual(other, { ...creation, is: 'existing', ours: false })
    const { on, attribs } = await kept(server, 'ada+x@example.com')
    assert.deepEqual([on, attribs], [{ [single]: 'unconfirmed', [double]: 'unconfirmed' }, { waitlist: ada.id }])

    for (const providerId of [creation.providerId!, undefined]) {
      const event = eventOf({ ...ada, ...(providerId === undefined ? {} : { providerId }) })
      assert.deepEqual(await provider.automation!.deliver(event, never), { is: 'delivered' })
    }
    await until(() => mailsTo(server, 'ada+x@example.com').length === 3)
    assert.deepEqual(mailsTo(server, 'ada+x@example.com').sort(), [CONFIRM, 'Welcome', 'Welcome'])

    const sure = await openedWith({ LISTMONK_PRECONFIRM: 'true', LISTMONK_ATTRIBUTES: 'source=landing page,plan=pro' })
    const grace = contact('grace@example.com')
    assert.equal((await sure.createContact(grace, false, never)).is, 'created')
    const vouched = await kept(server, 'grace@example.com')
    assert.deepEqual(vouched.on, { [single]: 'confirmed', [double]: 'confirmed' })
    assert.deepEqual(vouched.attribs, { source: 'landing page', plan: 'pro', waitlist: grace.id })
    await mailsHaveCome(server)
    assert.deepEqual(mailsTo(server, 'grace@example.com'), [])
  })

  test('an address that is refused is refused in the words of several languages', async t => {
    const { server, provider } = await started(t)
    // It is started again for each: those with the shortest pack and the longest ones.
    for (const lang of ['en', 'zh-CN', 'fr-CA', 'ru', 'ml']) {
      await server.set({ 'app.lang': lang, 'privacy.domain_blocklist': ['blocked.example'] })
      const refused = await provider.createContact(contact('a@b@example.com'), false, never)
      assert.deepEqual(refused, { is: 'refused', reason: 'it is not valid there' }, lang)
      const blocked = await provider.createContact(contact(`ada@blocked.example`), false, never)
      assert.deepEqual(blocked, { is: 'refused', reason: 'its domain is blocked there' }, lang)
    }
  })

  test('a list that is forbidden, gone or made later is our mistake, and completed once it is mended', async t => {
    const { server, single, foreign, openedWith } = await started(t)
    const gone = 999
    const all = await server.user(
      'everything',
      [],
      ['subscribers:get_all', 'subscribers:manage', 'lists:manage_all', 'lists:get_all'],
    )
    const everything = { LISTMONK_USER: 'everything', LISTMONK_TOKEN: all }
    for (const more of [
      { LISTMONK_LIST_IDS: `${foreign}` },
      { LISTMONK_LIST_IDS: `${single},${foreign}` },
      { LISTMONK_LIST_IDS: `${single},${gone}` },
      { LISTMONK_LIST_IDS: `${single},${gone}`, ...everything },
      { LISTMONK_LIST_IDS: `${gone}`, ...everything },
    ]) {
      const provider = await openedWith(more)
      const ada = contact(`ada-${crypto.randomUUID()}@example.com`)
      for (const doubt of [false, true, true]) {
        const creation = await provider.createContact(ada, doubt, never)
        assert.equal(creation.is, 'misconfigured', JSON.stringify([more, creation]))
      }
      assert.equal((await provider.check(never))?.is, 'misconfigured')
    }
    // One that may be seen, but not managed, is left out without a word.
    const seeing = await server.user('seeing', [single], [...PERMISSIONS, 'lists:get_all'])
    const sees = { LISTMONK_USER: 'seeing', LISTMONK_TOKEN: seeing, LISTMONK_LIST_IDS: `${single},${foreign}` }
    const failure = await (await openedWith(sees)).check(never)
    assert.deepEqual(failure, { is: 'misconfigured', why: `the API user lacks list:manage for list ${foreign}` })

    // A list with double opt-in that is there later, and may be managed.
    const ada = contact('ada@example.com')
    const late: number = (await server.owner('POST', '/lists', { name: 'Late', type: 'private', optin: 'double' })).id
    const before = await openedWith({ LISTMONK_LIST_IDS: `${single},${late}` })
    assert.equal((await before.createContact(ada, false, never)).is, 'misconfigured')
    const token = await server.user('mended', [single, late])
    const mended = await openedWith({
      LISTMONK_LIST_IDS: `${single},${late}`,
      LISTMONK_USER: 'mended',
      LISTMONK_TOKEN: token,
    })
    const creation = await mended.createContact(ada, true, never)
    assert.ok(creation.is === 'existing' && creation.ours === true, JSON.stringify(creation))
    assert.deepEqual((await kept(server, 'ada@example.com')).on, { [single]: 'unconfirmed', [late]: 'unconfirmed' })
    await mailsHaveCome(server)
    assert.deepEqual(mailsTo(server, 'ada@example.com'), [CONFIRM])
  })

  test('in doubt, one of other lists, whom the API user may not see, is not ours', async t => {
    const { server, foreign, provider } = await started(t)
    await server.owner('POST', '/subscribers', {
      email: 'ada@example.com',
      name: 'Ada',
      status: 'enabled',
      lists: [foreign],
    })
    assert.deepEqual(await provider.createContact(contact('ada@example.com'), true, never), {
      is: 'existing',
      ours: false,
    })
  })

  test('what the template or its permission lacks is our mistake; one who is gone is not', async t => {
    const { server, single, provider, openedWith } = await started(t)
    const ada = contact('ada@example.com')
    const creation = await provider.createContact(ada, false, never)
    assert.ok(creation.is === 'created')
    const event = eventOf({ ...ada, providerId: creation.providerId! })
    const silent = await server.user('silent', [single], ['subscribers:get', 'subscribers:manage'])
    // 1 is the template of campaigns.
    for (const more of [
      { LISTMONK_TEMPLATE_ID: '99' },
      { LISTMONK_TEMPLATE_ID: '1' },
      { LISTMONK_USER: 'silent', LISTMONK_TOKEN: silent, LISTMONK_LIST_IDS: String(single) },
    ]) {
      const wrong = await openedWith(more)
      const failure = await wrong.check(never)
      assert.ok(failure?.is === 'misconfigured', JSON.stringify(more))
      assert.match(failure.why, /^look at template \d+: answered with 40[03]/)
      assert.equal((await wrong.automation!.deliver(event, never)).is, 'misconfigured')
    }
    await server.owner('DELETE', `/subscribers/${creation.providerId}`)
    assert.equal((await provider.automation!.deliver(event, never)).is, 'refused')
    assert.equal((await provider.automation!.deliver(eventOf(ada), never)).is, 'refused')
    assert.deepEqual(mailsTo(server, 'ada@example.com'), [CONFIRM])
  })

  test('those whom it knew join, unless they left or may not be changed', async t => {
    const { server, single, double, foreign, openedWith } = await started(t)
    const had = async (email: string, lists: number[], status = 'enabled'): Promise<number> =>
      (await server.owner('POST', '/subscribers', { email, name: 'Old', status, lists, attribs: { city: 'Berlin' } }))
        .id
    const join = await openedWith({ PROVIDER_EXISTING: 'join' })
    const signUp = async (email: string) => {
      for (const doubt of [false, true]) {
        const creation = await join.createContact(contact(email), doubt, never)
        assert.ok(creation.is === 'existing', JSON.stringify([email, creation]))
      }
      return kept(server, email)
    }
    await had('on-one@example.com', [single])
    const before = await kept(server, 'on-one@example.com')
    const { on, lists: _, ...rest } = await signUp('on-one@example.com')
    assert.deepEqual(on, { [single]: 'unconfirmed', [double]: 'unconfirmed' })
    const { on: _on, lists: _lists, ...restBefore } = before
    assert.deepEqual(rest, restBefore)

    const left = await had('left@example.com', [single])
    await server.owner('PUT', '/subscribers/lists', { ids: [left], action: 'unsubscribe', target_list_ids: [single] })
    assert.deepEqual((await signUp('left@example.com')).on, { [single]: 'unsubscribed' })

    const blocked = await had('blocked@example.com', [single])
    await server.owner('PUT', `/subscribers/${blocked}/blocklist`)
    assert.deepEqual((await signUp('blocked@example.com')).on, { [single]: 'unsubscribed' })

    await had('foreign@example.com', [foreign])
    assert.deepEqual((await signUp('foreign@example.com')).on, { [foreign]: 'unconfirmed' })
    const seeing = await server.user('seeing', [single, double], ['subscribers:get_all', 'subscribers:manage'])
    const seer = await openedWith({ PROVIDER_EXISTING: 'join', LISTMONK_USER: 'seeing', LISTMONK_TOKEN: seeing })
    assert.equal((await seer.createContact(contact('foreign@example.com'), false, never)).is, 'existing')
    assert.deepEqual((await kept(server, 'foreign@example.com')).on, { [foreign]: 'unconfirmed' })

    const everybody = await server.user('everybody', [], EVERYBODY)
    const may = { LISTMONK_USER: 'everybody', LISTMONK_TOKEN: everybody, LISTMONK_LIST_IDS: String(single) }
    const all = await openedWith({ PROVIDER_EXISTING: 'join', ...may })
    assert.equal((await all.createContact(contact('foreign@example.com'), false, never)).is, 'existing')
    assert.deepEqual((await kept(server, 'foreign@example.com')).on, {
      [foreign]: 'unconfirmed',
      [single]: 'unconfirmed',
    })

    await mailsHaveCome(server)
    const mailed = ['on-one', 'left', 'blocked', 'foreign'].map(name => mailsTo(server, `${name}@example.com`))
    assert.deepEqual(mailed, [[CONFIRM, CONFIRM], [], [], []], 'once for each signup, as a form of listmonk')
  })

  test('a subscriber of twenty lists with long descriptions can be read', async t => {
    const { server } = await started(t)
    const ids: number[] = []
    for (let i = 0; i < 20; i++) {
      const list = { name: `List ${i}`, type: 'private', optin: 'single', description: 'x'.repeat(1_000) }
      ids.push((await server.owner('POST', '/lists', list)).id)
    }
    const token = await server.user('many', ids)
    const many = await opened(
      t,
      { vendor: 'listmonk' },
      {
        LISTMONK_BASE_URL: server.url,
        LISTMONK_USER: 'many',
        LISTMONK_TOKEN: token,
        LISTMONK_LIST_IDS: ids.join(),
      },
    )
    const ada = contact('ada@example.com')
    assert.equal((await many.createContact(ada, false, never)).is, 'created')
    const creation = await many.createContact(ada, true, never)
    assert.ok(creation.is === 'existing' && creation.ours === true, JSON.stringify(creation))
  })

  test('behind a proxy that refuses by its own rules, nobody is dropped', async t => {
    const { provider, openedWith } = await started(t)
    const proxy = await startVendor(t, () => ({ status: 400, body: { message: 'Request blocked by policy' } }))
    const behind = await openedWith({ LISTMONK_BASE_URL: proxy.url })
    assert.equal((await behind.createContact(contact('ada@example.com'), false, never)).is, 'misconfigured')
    assert.equal((await provider.createContact(contact('ada@example.com'), true, never)).is, 'created')
  })

  test('the program in front of it: signed up, known, and kept while it is away', async t => {
    const { server, single, double, env } = await started(t)
    await server.owner('POST', '/subscribers', {
      email: 'old@example.com',
      name: 'Old',
      status: 'enabled',
      lists: [single],
    })
    const cwd = temporaryFolder(t)
    const own = { HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', DATABASE_URL: 'sqlite:./waitlist.db' }
    const program = await runProgram(t, { ...own, PROVIDER: 'listmonk', PROVIDER_EXISTING: 'join', ...env }, { cwd })
    const { signUp } = await clientOf(program)

    const ada = await signUp({ name: 'Ada', email: 'ada@example.com' })
    assert.deepEqual([ada.status, ada.json.alreadyExisted], [200, false])
    assert.equal(String((await kept(server, 'ada@example.com')).id), ada.json.contactId)
    const old = await signUp({ name: 'Old', email: 'old@example.com' })
    assert.deepEqual([old.status, old.json.alreadyExisted, old.json.contactId], [200, true, undefined])
    assert.deepEqual((await kept(server, 'old@example.com')).on, { [single]: 'unconfirmed', [double]: 'unconfirmed' })

    await server.stop()
    assert.equal((await signUp({ name: 'Grace', email: 'grace@example.com' })).status, 502)
    await server.start()
    await until(() => ['ada', 'grace'].every(name => mailsTo(server, `${name}@example.com`).length === 2))
    for (const name of ['ada', 'grace']) {
      assert.deepEqual(mailsTo(server, `${name}@example.com`).sort(), [CONFIRM, 'Welcome'])
    }
    await until(() => mailsTo(server, 'old@example.com').length > 0)
    assert.deepEqual(mailsTo(server, 'old@example.com'), [CONFIRM])
    assert.equal(await program.end('SIGTERM'), 0)
  })
})
