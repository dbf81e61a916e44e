import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Addressee, confirm } from '../../src/confirm/store.ts'
import type { SignupTargets } from '../../src/store/activate.ts'
import { contactPages } from '../../src/store/contacts.ts'
import type { Delivery } from '../../src/store/outbox.ts'
import type { Store } from '../../src/store/store.ts'
import { forEachEngine, only, signup } from '../store/place.ts'

const asking = { destinations: ['webhook', 'mail'], confirmation: 'mail' }
const targets: SignupTargets = { eventName: 'waitlist.joined', provider: null, ...asking }

const contactsIn = async (store: Store) => (await Array.fromAsync(contactPages(store.read, {}))).flat()

const confirmed = (store: Store, who: Addressee) => store.transaction(tx => confirm(tx, who, targets))

/** Signs up somebody who is asked to confirm, now or before. */
async function unconfirmed(store: Store, email = 'ada@example.com') {
  const admission = await store.admit(signup('Visitor', email))
  assert.ok(admission.is === 'unconfirmed' && admission.sends)
  const contacts = await contactsIn(store)
  return contacts.find(contact => contact.email === email)!
}

async function send(store: Store): Promise<readonly Delivery[]> {
  const mails = await store.claim('mail', 10)
  for (const mail of mails) assert.ok(await store.settle(mail, { is: 'delivered' }))
  return mails
}

forEachEngine('confirmed addresses', place => {
  test('who signs up gets one mail; confirmed once, however often, they join as anybody does', async t => {
    const { open, operator } = await place(t)
    const store = await open(asking)
    const ada = await unconfirmed(store)
    const { contacts, signups } = await operator.counts()
    assert.deepEqual([contacts.unconfirmed, contacts.listed, signups], [1, 0, []])
    const news = { eventName: 'waitlist.invited', destinations: ['mail'] }
    assert.equal((await operator.invite({}, undefined, news)).done, 0)
    assert.deepEqual(await store.claim('webhook', 10), [])
    const mail = await only(store, 'mail')
    assert.deepEqual(
      [mail.kind, mail.contact.state, mail.contact.confirmation?.times],
      ['confirmation', 'unconfirmed', 1],
    )
    for (const nobody of [
      { ...ada, id: ada.id.replace(/^./, 'f') },
      { ...ada, createdAt: new Date(ada.createdAt.getTime() + 1) },
    ])
      assert.equal(await confirmed(store, nobody), null)
    const many = Array.from({ length: 8 }, () => confirmed(store, ada))
    assert.deepEqual((await Promise.all(many)).sort(), [...Array(7).fill('before'), 'now'])
    assert.equal(await store.settle(mail, { is: 'delivered' }), false, 'what asked for it is over')
    for (const destination of asking.destinations) {
      const { kind, contact } = await only(store, destination)
      assert.deepEqual([kind, contact.state, contact.event?.name], ['joined', 'listed', 'waitlist.joined'])
      assert.ok(Math.abs(contact.confirmedAt!.getTime() - Date.now()) < 60_000)
    }
    assert.deepEqual(await store.admit(signup('Ada', ada.email)), { is: 'already listed' })
  })

  test('of many who type one address at once, one is new; those above the limit are held, and get no mail', async t => {
    const { open, operator } = await place(t)
    const store = await open({ ...asking, holds: { above: { count: 2, time: 60_000 }, suspicious: false } })
    const crowd = await Promise.all(
      Array.from({ length: 24 }, (_, i) => store.admit(signup('V', `v${i % 3}@example.com`))),
    )
    assert.equal(crowd.filter(each => each.is === 'unconfirmed' && each.sends).length, 2)
    assert.equal(crowd.filter(({ is }) => is === 'held now').length, 1)
    assert.equal((await send(store)).length, 2)
    assert.deepEqual(await operator.release({}, targets), { done: 1, missing: [] })
    const [mail] = await send(store)
    assert.deepEqual([mail?.kind, mail?.contact.confirmation?.times], ['confirmation', 1])
    assert.equal(await confirmed(store, mail!.contact), 'now')
  })
})
