import { test } from 'node:test'
import { LoopsClient } from 'loops'
import { contactOf, eventOf, opened, providerContract } from '../contracts/provider.ts'
import { assertSameWire, recorded, withFetchTo } from '../harness/wire.ts'
import { loopsFake, loopsSettings } from './loops.fake.ts'

providerContract({
  vendor: 'loops',
  settings: loopsSettings,
  wrongKey: { LOOPS_API_KEY: 'another-key' },
  fake: loopsFake,
  refused: 'refused@example.com',
})

test("our requests are those of the vendor's own client", async t => {
  const ada = contactOf('ada@example.com')
  const event = eventOf(ada)
  const never = new AbortController().signal

  const ours = await recorded(t, loopsFake().answer, async url => {
    const provider = await opened(
      t,
      { vendor: 'loops' },
      { ...loopsSettings(url), LOOPS_MAILING_LISTS: 'list-1,list-2' },
    )
    await provider.check!(never)
    await provider.createContact(ada, false, never)
    await provider.createContact(ada, true, never)
    await provider.automation!.deliver(event, never)
  })

  const theirs = await recorded(t, loopsFake().answer, url =>
    withFetchTo(url, async () => {
      const client = new LoopsClient(loopsSettings('').LOOPS_API_KEY)
      const contact = {
        email: 'ada@example.com',
        properties: { firstName: 'Ada', lastName: 'King Lovelace', source: 'waitlist' },
        mailingLists: { 'list-1': true, 'list-2': true },
      }
      await client.testApiKey()
      await client.createContact(contact)
      await client.createContact(contact).catch(() => {})
      await client.findContact({ email: 'ada@example.com' })
      await client.sendEvent({
        email: 'ada@example.com',
        eventName: 'waitlist.joined',
        headers: { 'Idempotency-Key': event.id },
      })
    }),
  )
  assertSameWire(ours, theirs, ['authorization', 'idempotency-key'])
})
