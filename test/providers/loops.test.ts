import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoopsClient } from 'loops'
import { readConfig } from '../../src/config/config.ts'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { startVendor } from '../harness/vendor.ts'
import { assertSameWire, recorded, withFetchTo } from '../harness/wire.ts'
import { loopsFake, loopsMore, loopsSettings } from './loops.fake.ts'

const loops = { vendor: 'loops' } as const
const never = new AbortController().signal
const ada = contactOf('ada@example.com')

providerContract({
  vendor: 'loops',
  settings: loopsSettings,
  wrongKey: { LOOPS_API_KEY: 'another-key' },
  fake: loopsFake,
  joining: { settings: loopsMore, members: ['mailingLists'] },
  refused: 'refused@example.com',
})

test('a visitor goes before the backlog, in what it leaves free of the rate', async t => {
  const { url, asked } = await startVendor(t, loopsFake().answer)
  const { createContact } = await opened(t, loops, loopsSettings(url))
  const stop = new AbortController()
  const backlog = Array.from({ length: 12 }, (_, i) =>
    createContact(contactOf(`waiting-${i}@example.com`), false, stop.signal, () => true, false),
  )
  assert.equal((await createContact(ada, false, never)).is, 'created')
  stop.abort()
  await Promise.all(backlog)
  const place = asked.findIndex(({ json }) => json.email === ada.email)
  assert.ok(place >= 0 && place <= 2, String(place))
})

test("our requests are those of the vendor's own client", async t => {
  const event = eventOf(ada)

  const ours = await recorded(t, loopsFake().answer, async url => {
    const provider = await opened(t, loops, { ...loopsSettings(url), ...loopsMore, PROVIDER_EXISTING: 'join' })
    assert.equal(await provider.check(never), null)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.createContact(ada, false, never)
    await provider.automation!.deliver(event, never)
    for (const is of ['removed', 'absent']) assert.equal((await provider.remove(ada.email, never)).is, is)
  })

  const theirs = await recorded(t, loopsFake().answer, url =>
    withFetchTo(url, async () => {
      const client = new LoopsClient(loopsSettings('').LOOPS_API_KEY)
      const email = 'ada@example.com'
      const mailingLists = { 'list-1': true, 'list-2': true }
      const contact = {
        email,
        properties: {
          firstName: 'Ada',
          lastName: 'King Lovelace',
          source: 'waitlist',
          userGroup: 'Early adopters',
          planName: 'free',
          heardOf: 'landing page',
        },
        mailingLists,
      }
      await client.testApiKey()
      await client.listMailingLists()
      await client.listContactProperties('custom')
      await client.createContact(contact)
      await client.createContact(contact).catch(() => {})
      await client.findContact({ email })
      await client.createContact(contact).catch(() => {})
      await client.updateContact({ email, mailingLists })
      await client.sendEvent({
        email,
        eventName: 'waitlist.joined',
        eventProperties: { campaign: 'launch' },
        headers: { 'Idempotency-Key': event.id },
      })
      await client.deleteContact({ email })
      await client.deleteContact({ email }).catch(() => {})
    }),
  )
  assertSameWire(ours, theirs, ['authorization', 'idempotency-key'])
})

test('nothing is sent of what is not set', async t => {
  const server = await startVendor(t, loopsFake().answer)
  const provider = await opened(t, loops, { ...loopsSettings(server.url), PROVIDER_EXISTING: 'join' })
  assert.equal(await provider.check(never), null)
  await provider.createContact(ada, false, never)
  assert.equal((await provider.createContact(ada, false, never)).is, 'existing')
  await provider.automation!.deliver(eventOf(ada), never)
  const contact = { email: 'ada@example.com', firstName: 'Ada', lastName: 'King Lovelace', source: 'waitlist' }
  assert.deepEqual(
    server.asked.map(({ path, json }) => [path, json]),
    [
      ['/api/v1/api-key', undefined],
      ['/api/v1/contacts/create', contact],
      ['/api/v1/contacts/create', contact],
      ['/api/v1/events/send', { email: 'ada@example.com', eventName: 'waitlist.joined' }],
    ],
  )
})

test('a removal is done when Loops says so', async t => {
  const said = async (status: number, body: object) => {
    const { url } = await startVendor(t, () => ({ status, body }))
    return (await (await opened(t, loops, loopsSettings(url))).remove('ada@example.com', never)).is
  }
  assert.equal(await said(200, { success: true, message: 'Contact deleted.' }), 'removed')
  assert.equal(await said(200, { success: false, message: 'Nothing was done.' }), 'unclear')
  assert.equal(await said(404, { success: false, message: 'Contact not found.' }), 'absent')
  assert.equal(await said(404, { message: 'Not found.' }), 'misconfigured')
})

test('who has unsubscribed from everything joins the lists, and stays unsubscribed', async t => {
  const fake = loopsFake()
  fake.had('ada@example.com')
  const server = await startVendor(t, fake.answer)
  const provider = await opened(t, loops, { ...loopsSettings(server.url), ...loopsMore, PROVIDER_EXISTING: 'join' })
  await provider.createContact(ada, false, never)
  const { subscribed, mailingLists, userGroup } = fake.kept('ada@example.com') as Record<string, unknown>
  assert.deepEqual(mailingLists, { 'list-0': true, 'list-1': true, 'list-2': true })
  assert.deepEqual([subscribed, userGroup], [false, 'Customers'])
})

const wrong: readonly (readonly [string, Record<string, string>, RegExp])[] = [
  ['a mailing list', { LOOPS_MAILING_LISTS: 'list-1,list-3' }, /mailing lists: there is no list-3$/],
  ['a property', { LOOPS_CONTACT_PROPERTIES: 'planName=a,colour=b' }, /of type string: there is no colour$/],
  ['a property of another type', { LOOPS_CONTACT_PROPERTIES: 'seats=7' }, /of type string: there is no seats$/],
]
for (const [what, change, why] of wrong) {
  test(`the check names ${what} that is not there`, async t => {
    const server = await startVendor(t, loopsFake().answer)
    const provider = await opened(t, loops, { ...loopsSettings(server.url), ...change })
    const failure = await provider.check(never)
    assert.ok(failure?.is === 'misconfigured' && why.test(failure.why), JSON.stringify(failure))
    assert.ok(server.asked.every(({ method }) => method === 'GET'))
  })
}

test("properties of Loops itself are refused at the start, so that nobody's consent is set by them", () => {
  for (const name of ['subscribed', 'email', 'mailingLists']) {
    const settings = {
      ...loopsSettings('https://api.example.com'),
      LOOPS_CONTACT_PROPERTIES: `planName=a,${name}=true`,
    }
    const result = readConfig({ PROVIDER: 'loops', ...settings })
    assert.ok('mistakes' in result)
    assert.match(result.mistakes.join(), new RegExp(`^LOOPS_CONTACT_PROPERTIES .*: ${name} is`))
  }
})
