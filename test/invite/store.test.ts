import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { invitationOf, inviteAgain, redeem } from '../../src/invite/store.ts'
import { eventId, eventOf } from '../../src/signup/contact.ts'
import type { ContactFilter } from '../../src/store/contacts.ts'
import type { Store } from '../../src/store/store.ts'
import { emailsOf, forEachEngine, type MakePlace, signup } from '../store/place.ts'

const destinations = ['webhook', 'mail']
const targets = { eventName: 'waitlist.invited', destinations }

const visitors = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => `v${from + i}@example.com`)

/** So many have joined in their order, and what that notified was delivered. */
async function listed(place: MakePlace, t: TestContext, count: number) {
  const here = await place(t)
  const { operator } = here
  const store = await here.open({ destinations, trackSources: true })
  for (const email of visitors(1, count)) await store.admit(signup('Visitor', email))
  for (const destination of destinations) {
    const claimed = await store.claim(destination, count)
    await Promise.all(claimed.map(each => store.settle(each, { is: 'delivered' })))
  }
  return {
    ...here,
    store,
    invite: (most?: number, filter: ContactFilter = {}) => operator.invite(filter, most, targets),
    invited: async () => Array.fromAsync(operator.contacts({ state: 'invited' })),
  }
}

const codeIn = (store: Store) => ({
  show: (code: string) => store.transaction(tx => invitationOf(tx, code)),
  redeem: (code: string) => store.transaction(tx => redeem(tx, code)),
})

forEachEngine('invitations', place => {
  test('again are invited those who have not redeemed, with the code that they have, and nobody else', async t => {
    const { store, command, invite, invited } = await listed(place, t, 4)
    await invite(3)
    const codes = (await invited()).map(({ invitation }) => invitation?.code ?? '')
    for (const each of await store.claim('mail', 10)) await store.settle(each, { is: 'delivered' })
    await codeIn(store).redeem(codes[1]!)
    const given = ['V1@example.com', 'v2@example.com', 'v4@example.com', 'nobody@example.com']
    const changed = await command(database => inviteAgain(database, given, targets))
    assert.equal(changed.done, 1)
    assert.deepEqual(changed.missing, [
      { address: 'v4@example.com', state: 'listed' },
      { address: 'nobody@example.com', state: null },
    ])
    assert.deepEqual(
      (await invited()).map(({ invitation }) => invitation?.code),
      codes,
    )
    assert.deepEqual(emailsOf(await store.claim('mail', 10)), ['v1@example.com'])
  })

  test('the first who came are invited, the next call takes the next; each with a code, an event and its deliveries', async t => {
    const { store, operator, invite, invited } = await listed(place, t, 7)
    assert.equal((await operator.countInvitable({}, 3)).total, 3)
    assert.deepEqual(await invite(3), { done: 3, missing: [] })
    assert.deepEqual(await invite(2), { done: 2, missing: [] })
    const people = await invited()
    assert.deepEqual(
      people.map(({ email }) => email),
      visitors(1, 5),
    )
    const codes = people.map(({ invitation }) => invitation?.code ?? '')
    for (const code of codes) assert.match(code, /^[\w-]{22}$/)
    assert.equal(new Set(codes).size, 5)
    for (const destination of destinations) {
      const claimed = await store.claim(destination, 10)
      assert.deepEqual(emailsOf(claimed), visitors(1, 5))
      for (const [i, { contact, kind, attempts, doubt }] of claimed.entries()) {
        assert.deepEqual([kind, attempts, doubt], ['invited', 0, false])
        const { id, name, code, at } = eventOf(contact, 'invited')
        assert.deepEqual([id, name, code], [eventId(contact, 'invited'), 'waitlist.invited', codes[i]])
        assert.ok(Math.abs(Date.now() - at.getTime()) < 60_000)
        assert.equal(contact.event?.name, 'waitlist.joined')
      }
    }
    assert.deepEqual(await invite(5), { done: 2, missing: [] })
    assert.deepEqual(await invite(5), { done: 0, missing: [] })
  })

  test('addresses, a text, a source and times say which; those who cannot be invited are named', async t => {
    const { store, operator, sql, invite } = await listed(place, t, 3)
    await store.admit({ ...signup('Visitor', 'v4@example.com'), source: { utm_source: 'hn' } })
    const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000)
    await sql("update contact set created_at = $1 where email = 'v2@example.com'", [ago(2).getTime()])
    const chosen = async (filter: ContactFilter) => {
      const { total } = await operator.countInvitable(filter)
      assert.equal((await invite(undefined, filter)).done, total)
      return total
    }
    assert.equal(await chosen({ until: ago(1) }), 1)
    assert.equal(await chosen({ since: ago(-1) }), 0)
    assert.equal(await chosen({ source: 'hn' }), 1)
    assert.equal(await chosen({ search: 'V3@' }), 1)
    const addresses = ['V1@Example.com', 'v2@example.com', 'nobody@example.com']
    assert.deepEqual(await invite(undefined, { addresses }), {
      done: 1,
      missing: [
        { address: 'v2@example.com', state: 'invited' },
        { address: 'nobody@example.com', state: null },
      ],
    })
    assert.equal((await invite(undefined, { addresses: [] })).done, 0, 'nobody is not everybody')
  })

  test('operators who invite at once each invite as many as they asked for', async t => {
    const here = await place(t)
    const { operator } = here
    const store = await here.open({ destinations: ['webhook'] })
    const emails = visitors(1, 1_500)
    await Promise.all(emails.map(email => store.admit(signup('Visitor', email))))
    const joined = await store.claim('webhook', 2_000)
    await Promise.all(joined.map(each => store.settle(each, { is: 'delivered' })))
    const order = (await Array.fromAsync(operator.contacts({}))).map(({ email }) => email)
    const invite = () => operator.invite({}, 600, { ...targets, destinations: ['webhook'] })
    const both = await Promise.all([invite(), nextTurn().then(invite)])
    assert.deepEqual(
      both.map(({ done }) => done),
      [600, 600],
    )
    const invited = await store.claim('webhook', 2_000)
    assert.deepEqual(emailsOf(invited).toSorted(), order.slice(0, 1_200).toSorted())
  })

  test('a code is redeemed once, however many ask at once; nobody else has it', async t => {
    const { store, operator, invite, invited } = await listed(place, t, 2)
    const code = codeIn(store)
    await invite()
    const [ada, bob] = (await invited()).map(({ invitation }) => invitation!)
    const known = { email: 'v1@example.com', name: 'Visitor', invitedAt: ada!.at }
    assert.deepEqual(await code.show(ada!.code), { ...known, redeemedAt: null })
    const answers = await Promise.all(Array.from({ length: 8 }, () => code.redeem(ada!.code)))
    const { redeemedAt } = answers[0]!
    assert.ok(Math.abs(redeemedAt!.getTime() - Date.now()) < 60_000)
    for (const answer of [...answers, await code.redeem(ada!.code), await code.show(ada!.code)])
      assert.deepEqual(answer, { ...known, redeemedAt })
    const other = [...ada!.code].toReversed().join('')
    for (const wrong of [other, ada!.code.toLowerCase(), ''])
      assert.deepEqual([await code.show(wrong), await code.redeem(wrong)], [null, null])
    assert.equal(await operator.addressOf(ada!.code), 'v1@example.com')
    assert.equal(await operator.addressOf(other), undefined)
    assert.equal((await code.show(bob!.code))?.redeemedAt, null)
    const { contacts, redeemed } = await operator.counts()
    assert.deepEqual([contacts.invited, redeemed], [2, 1])
    await operator.erase('v1@example.com')
    assert.deepEqual([await code.show(ada!.code), await code.redeem(ada!.code)], [null, null])
  })

  test('what waits is as old as the invitation, and not as the signup', async t => {
    const { operator, sql, invite } = await listed(place, t, 1)
    await invite()
    await sql('update contact set created_at = 0, event_at = 0')
    const waiting = (await operator.counts()).deliveries.filter(({ state }) => state === 'waiting')
    assert.equal(waiting.length, 2)
    for (const { oldest } of waiting) assert.ok(Date.now() - oldest!.getTime() < 60_000)
  })
})
