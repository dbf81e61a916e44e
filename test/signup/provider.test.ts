import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { assertRefused, clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { until } from '../harness/program.ts'
import { type Received, type Said, startReceiver } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'
import { type LoopsFake, loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const UNREACHED = 'the email provider could not be reached; your signup is saved and will be completed'
const UNAVAILABLE = 'the waitlist service is temporarily unavailable; your signup is saved and will be completed'
const NOT_VALID = 'the email provider does not accept this address: it is not valid there'
const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }

async function started(t: TestContext, change = (fake: LoopsFake) => fake.answer) {
  const fake = loopsFake()
  const vendor = await startReceiver(t, change(fake))
  const service = await startService(t, { PROVIDER: 'loops', ...loopsSettings(vendor.url) })
  const asked = (path: string) => vendor.received.filter(request => request.path.endsWith(path)).length
  return {
    ...{ fake, vendor, service, asked },
    client: await clientOf(service),
    stored: () => contactsIn(service.databasePath).map(({ email, state, events }) => [email, state, events]),
    eventSent: () => until(() => asked('/events/send') > 0),
  }
}

test("a new address gets the provider's id, and its event is sent once", async t => {
  const { fake, client, stored, eventSent } = await started(t)
  const { status, json, headers } = await client.signUp({ ...ada, email: 'Ada@Example.com' })
  const { contactId, ...rest } = json
  assert.deepEqual([status, contactId], [200, (fake.kept(ada.email) as { id: string }).id])
  const isNew = { alreadyExisted: false, automationTriggered: true }
  assert.deepEqual(rest, { success: true, message: 'You are on the waitlist.', ...isNew })
  assert.ok(headers.get('set-cookie'))
  await eventSent()
  await until(() => fake.starts(ada.email) === 1)
  assert.equal(stored()[0]![0], 'Ada@Example.com', 'as it was typed')
})

test('an address that the provider had is listed and told so; there is no event', async t => {
  const { fake, client, stored, eventSent } = await started(t)
  fake.had(ada.email)
  const { status, json, headers } = await client.signUp(ada)
  const isKnown = { alreadyExisted: true, automationTriggered: false }
  assert.equal(status, 200)
  assert.deepEqual(json, { success: true, message: 'You are already on the waitlist.', ...isKnown })
  assert.ok(headers.get('set-cookie'))
  assert.deepEqual(stored(), [[ada.email, 'listed', 0]])
  // The event of somebody else comes, and no other.
  await client.signUp({ name: 'Grace', email: 'grace@example.com' })
  await eventSent()
  assert.equal(fake.starts(ada.email), 0)
})

test('a known address is answered without any call upstream, whatever the provider does', async t => {
  const { vendor, client, eventSent } = await started(t)
  await client.signUp(ada)
  await eventSent()
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
  const { fake, client, stored } = await started(
    t,
    ({ answer }) =>
      (one: Received) =>
        refuses ? no : answer(one),
  )
  for (let time = 1; time <= 2; time++) {
    assertRefused(await client.signUp(ada), 400, NOT_VALID)
    assert.deepEqual(stored(), [], 'nothing is kept of it')
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

describe('a provider that does not answer well', { concurrency: 8 }, () => {
  // With half an answer the second try is known there, which the status alone says.
  for (const [what, tries] of [
    ['reset after', 2],
    ['truncated JSON', 1],
  ] as const) {
    test(`C-20: "${what}": 502, also for who tries again; the signup is kept and completed, once`, async t => {
      const { fake, client, stored, vendor } = await started(t)
      vendor.always(what)
      for (let time = 1; time <= tries; time++) assertRefused(await client.signUp(ada), 502, UNREACHED)
      assert.deepEqual(stored(), [[ada.email, 'pending', 0]])
      vendor.behave()
      await until(() => fake.starts(ada.email) > 0)
      assert.deepEqual([stored(), fake.count(ada.email), fake.starts(ada.email)], [[[ada.email, 'listed', 1]], 1, 1])
      const { status, json } = await client.signUp(ada)
      assert.deepEqual([status, json.alreadyExisted, json.automationTriggered], [200, true, false])
    })
  }
})
