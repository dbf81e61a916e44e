import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { assertRefused, clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { type Misbehaviour, type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'
import { type LoopsFake, loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const UNREACHED = 'the email provider could not be reached; your signup is saved and will be completed'
const UNAVAILABLE = 'the waitlist service is temporarily unavailable; your signup is saved and will be completed'
const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }

async function started(t: TestContext, more: Record<string, string> = {}, change = (fake: LoopsFake) => fake.answer) {
  const fake = loopsFake()
  const vendor = await startReceiver(t, change(fake))
  const service = await startService(t, { PROVIDER: 'loops', ...loopsSettings(vendor.url), ...more })
  const stored = () => contactsIn(service.databasePath)
  return {
    fake,
    vendor,
    service,
    stored,
    client: await clientOf(service),
    /** From now on every request is met with this. */
    always: (what: Misbehaviour) => vendor.always(what),
    /** Nothing is left to do for so many contacts: each is listed here and there, with one event. */
    async completed(count: number): Promise<void> {
      await until(() => stored().filter(({ email }) => fake.starts(email) > 0).length === count)
      for (const { email, state, events } of stored()) {
        assert.deepEqual([email, state, events], [email, 'listed', 1])
        assert.deepEqual([email, fake.count(email), fake.starts(email)], [email, 1, 1])
      }
    },
  }
}
type Started = Awaited<ReturnType<typeof started>>

const asked = ({ vendor }: Started, path: string) => vendor.received.filter(request => request.path.endsWith(path))
const eventSent = (started: Started) => until(() => asked(started, '/events/send').length > 0)

test("a new address gets the provider's id, and its event is sent once", async t => {
  const all = await started(t)
  const { fake, service, client } = all
  const { status, json, headers } = await client.signUp({ ...ada, email: 'Ada@Example.com' })
  assert.equal(status, 200)
  const { contactId, ...rest } = json
  assert.equal(contactId, (fake.kept('ada@example.com') as { id: string }).id)
  assert.deepEqual(rest, {
    success: true,
    message: 'You are on the waitlist.',
    alreadyExisted: false,
    automationTriggered: true,
  })
  assert.ok(headers.get('set-cookie'))
  await eventSent(all)
  await until(() => fake.starts('ada@example.com') === 1)
  assert.equal(contactsIn(service.databasePath)[0]?.email, 'Ada@Example.com', 'as it was typed')
})

test('an address that the provider had is listed and told so; there is no event', async t => {
  const all = await started(t)
  const { fake, service, client } = all
  fake.had(ada.email)
  const { status, json, headers } = await client.signUp(ada)
  assert.equal(status, 200)
  assert.deepEqual(json, {
    success: true,
    message: 'You are already on the waitlist.',
    alreadyExisted: true,
    automationTriggered: false,
  })
  assert.ok(headers.get('set-cookie'))
  const stored = contactsIn(service.databasePath).map(({ email, state, events }) => ({ email, state, events }))
  assert.deepEqual(stored, [{ email: ada.email, state: 'listed', events: 0 }])
  // The event of somebody else comes, and no other.
  await client.signUp({ name: 'Grace', email: 'grace@example.com' })
  await eventSent(all)
  assert.equal(fake.starts(ada.email), 0)
})

test('a known address is answered without any call upstream, whatever the provider does', async t => {
  const all = await started(t)
  const { vendor, client } = all
  await client.signUp(ada)
  await eventSent(all)
  const before = vendor.received.length
  vendor.always('hang before')
  for (const email of [ada.email, 'ADA@EXAMPLE.COM']) {
    const { status, json } = await client.signUp({ name: 'Somebody', email })
    assert.deepEqual([status, json.alreadyExisted, json.automationTriggered], [200, true, false])
    assert.equal('contactId' in json, false)
  }
  assert.equal(vendor.received.length, before)
})

test('an address that the provider refuses is a 400 with the reason, and can be used again later', async t => {
  let refuses = true
  const no: Said = { status: 400, body: { success: false, message: 'Invalid email address.' } }
  const all = await started(
    t,
    {},
    ({ answer }) =>
      (one: Received) =>
        refuses ? no : answer(one),
  )
  const { fake, service, client } = all
  for (let time = 1; time <= 2; time++) {
    const sentence = 'the email provider does not accept this address: it is not valid there'
    assertRefused(await client.signUp(ada), 400, sentence)
    assert.deepEqual(contactsIn(service.databasePath), [], 'nothing is kept of it')
  }
  refuses = false
  const { status, json } = await client.signUp(ada)
  assert.deepEqual([status, json.alreadyExisted, json.automationTriggered], [200, false, true])
  await until(() => fake.starts(ada.email) === 1)
})

test('C-20: a key that is refused is a 500 and a loud log line; with the right one what waited is completed', async t => {
  const fake = loopsFake()
  const vendor = await startReceiver(t, fake.answer)
  const path = join(temporaryFolder(t), 'waitlist.db')
  const env = { PROVIDER: 'loops', ...loopsSettings(vendor.url), DATABASE_URL: `sqlite:${path}` }
  const KEY = 'a-key-that-nobody-knows'
  const wrong = await startService(t, { ...env, LOOPS_API_KEY: KEY })
  const { signUp } = await clientOf(wrong)
  for (let time = 1; time <= 2; time++) assertRefused(await signUp(ada), 500, UNAVAILABLE)
  const loud = wrong.logged.filter(({ level }) => Number(level) >= 50)
  assert.deepEqual(
    loud.map(({ destination, msg }) => [destination, msg]),
    [['loops', 'Loops refuses our settings: deliveries are kept']],
  )
  assert.match(String(loud[0]?.why), /401/)
  const text = JSON.stringify(wrong.logged)
  for (const secret of [KEY, ada.email, ada.name]) assert.ok(!text.includes(secret))
  assert.equal(contactsIn(path)[0]?.state, 'pending')
  await wrong.stop()

  await startService(t, env)
  await until(() => fake.starts(ada.email) === 1)
  assert.deepEqual(
    contactsIn(path).map(({ state, events }) => [state, events]),
    [['listed', 1]],
  )
})

const outages: readonly (readonly [what: Misbehaviour, tries: number])[] = [
  ['reset after', 2],
  // The second try is known there, which the status alone says.
  ['truncated JSON', 1],
]

describe('a provider that does not answer well', { concurrency: 8 }, () => {
  for (const [what, tries] of outages) {
    test(`C-20: "${what}": 502, also for who tries again; the signup is kept and completed, once`, async t => {
      const { client, stored, always, vendor, completed } = await started(t)
      always(what)
      for (let time = 1; time <= tries; time++) assertRefused(await client.signUp(ada), 502, UNREACHED)
      assert.deepEqual(
        stored().map(({ email, state, events }) => [email, state, events]),
        [[ada.email, 'pending', 0]],
      )
      vendor.behave()
      await completed(1)
      const { status, json } = await client.signUp(ada)
      assert.deepEqual([status, json.alreadyExisted, json.automationTriggered], [200, true, false])
    })
  }

  test('C-20: nobody listens there: 502, and the signup is kept', async t => {
    const port = await freePort()
    const { client, stored } = await started(t, { LOOPS_BASE_URL: `http://127.0.0.1:${port}` })
    assertRefused(await client.signUp(ada), 502, UNREACHED)
    assert.equal(stored()[0]?.state, 'pending')
  })
})
