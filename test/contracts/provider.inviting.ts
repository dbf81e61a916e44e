import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { allVendors } from '../../src/providers/list.ts'
import type { Contact } from '../../src/signup/contact.ts'
import { startReceiver } from '../harness/receiver.ts'
import { invited } from './destination.ts'
import { contactOf, eventOf, opened, type VendorUnderTest } from './provider.ts'

const vendors = await allVendors()
const never = new AbortController().signal

/** What the vendor's automation is told of an invitation. */
export function invitingContract(under: VendorUnderTest): void {
  const { promises } = vendors[under.vendor]

  describe('an invitation', () => {
    if (!promises.namesEvents) {
      test('is not told, since the name of an event starts nothing there', async t => {
        const { url } = await startReceiver(t, under.fake().answer)
        const { automation } = await opened(t, under, under.settings(url))
        assert.deepEqual(automation?.events ?? ['joined'], ['joined'])
      })
      return
    }

    test('is told under its own name and id, with the code', async t => {
      const { url, received } = await startReceiver(t, under.fake().answer)
      const provider = await opened(t, under, under.settings(url))
      const ada: Contact = contactOf('ada@example.com')
      const creation = await provider.createContact(ada, false, never)
      assert.ok(creation.is === 'created')
      const contact = { ...ada, providerId: creation.providerId }
      const { automation } = provider
      // A vendor may start its own for those who join.
      if (automation === null) return t.skip('these settings name no automation')
      assert.deepEqual(automation.events, ['joined', 'invited'])
      const texts: string[] = []
      for (const event of [{ ...eventOf({ ...contact, state: 'listed' }) }, invited(0, contact)]) {
        const before = received.length
        assert.deepEqual(await automation.deliver(event, never), { is: 'delivered' })
        assert.equal(received.length, before + 1)
        const { headers, json } = received.at(-1)!
        const key = Object.entries(headers).filter(([name]) => name.includes('idempotency'))
        texts.push(JSON.stringify([key, json]))
      }
      const [joined = '', told = ''] = texts
      const { code = '' } = invited()
      assert.match(joined, /waitlist[._]joined/)
      assert.match(told, /waitlist[._]invited/)
      assert.ok(told.includes(code) && !joined.includes(code))
      // Where the vendor recognises a repetition by an id, that of the other event must be another one.
      const ids = texts.map(text =>
        [...text.matchAll(/"(?:\w*_?id|messageId|[\w-]*idempotency-key)"[:,]"([^"]+)"/g)].map(([, id]) => id),
      )
      if (promises.repeatable !== 0) assert.notDeepEqual(ids[0], ids[1], told)
    })
  })
}
