import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { Candidates, Decided } from '../../src/stores/operator/decide.ts'
import type { InvitationNews } from '../../src/stores/operator/invitations.ts'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { type Contact, eventId, eventOf } from '../../src/waitlist/rules/contact.ts'
import { seedOf } from '../harness/seed.ts'
import { isSlow } from '../harness/slow.ts'
import { course, type Desk, type MakeDesk, type OpenDesk, openDesk } from './operator.desk.ts'
import { emailsOf, pendingNow, signup } from './store.place.ts'

const destinations = ['webhook', 'mail']
const news: InvitationNews = { eventName: 'waitlist.invited', destinations }
const alone = { provider: null, destinations }

const visitors = (from: number, to = from) =>
  Array.from({ length: to - from + 1 }, (_, i) => `v${from + i}@example.com`)

async function join(store: Store, emails: readonly string[]): Promise<void> {
  for (const email of emails) await store.admit(signup('Visitor', email))
}

const invite = ({ operator }: Desk, most?: number, which: Candidates = {}): Promise<Decided> =>
  operator.invite(which, most, news, course)

const all = async ({ operator }: Desk): Promise<readonly Contact[]> => Array.fromAsync(await operator.contacts())
const invitedIn = async (desk: Desk) => (await all(desk)).filter(({ state }) => state === 'invited')
const who = (contacts: readonly Contact[]) => contacts.map(({ email }) => email)

/** Everybody has joined, without a provider, and what that told was delivered. */
async function listed(make: MakeDesk, t: TestContext, count: number): Promise<OpenDesk> {
  const desk = await openDesk(make, t, alone)
  await join(desk.store, visitors(1, count))
  for (const destination of destinations) {
    for (const each of await desk.store.claim(destination, count)) await desk.store.settle(each, { is: 'delivered' })
  }
  return desk
}

/** Whom the owner lets in. */
export function invitingContract(name: string, make: MakeDesk): void {
  describe(`invitations in ${name}`, () => {
    test('the first who came are invited, the next call takes the next; each with a code, an event and its deliveries', async t => {
      const desk = await listed(make, t, 7)
      const { store } = desk
      assert.equal((await desk.operator.countInvitable({}, 3)).total, 3)
      assert.deepEqual(await invite(desk, 3), { done: 3, missing: [] })
      assert.deepEqual(who(await invitedIn(desk)), visitors(1, 3))
      assert.deepEqual(await invite(desk, 2), { done: 2, missing: [] })
      const people = await invitedIn(desk)
      assert.deepEqual(who(people), visitors(1, 5))
      const codes = people.map(({ invitation }) => invitation?.code ?? '')
      for (const code of codes) assert.match(code, /^[\w-]{22}$/)
      assert.equal(new Set(codes).size, 5)
      for (const destination of destinations) {
        const claimed = await store.claim(destination, 10)
        assert.deepEqual(emailsOf(claimed), visitors(1, 5))
        for (const [i, { contact, event, attempts, doubt }] of claimed.entries()) {
          assert.deepEqual([event, attempts, doubt], ['invited', 0, false])
          const { id, name: told, code, at } = eventOf(contact, event)
          assert.deepEqual([id, told, code], [eventId(contact, 'invited'), 'waitlist.invited', codes[i]])
          assert.ok(Math.abs(Date.now() - at.getTime()) < 60_000)
          assert.equal(contact.event?.name, 'waitlist.joined')
        }
      }
      assert.deepEqual(await invite(desk, 5), { done: 2, missing: [] })
      assert.deepEqual(await invite(desk, 5), { done: 0, missing: [] })
    })

    test('who has not heard yet that they joined is told of both', async t => {
      const desk = await openDesk(make, t, alone)
      await join(desk.store, visitors(1))
      await invite(desk)
      const claimed = await desk.store.claim('mail', 10)
      assert.deepEqual(claimed.map(({ event }) => event).toSorted(), ['invited', 'joined'])
      for (const each of claimed) assert.equal(await desk.store.settle(each, { is: 'delivered' }), true)
      const records = await desk.operator.deliveries({ destination: 'mail', limit: 10 })
      const { id } = claimed[0]!.contact
      assert.deepEqual(records.map(({ eventId }) => eventId).toSorted(), [`evt_${id}`, `inv_${id}`])
    })

    test('addresses, a domain, a text, a source and times say which; those who cannot be invited are named', async t => {
      const desk = await openDesk(make, t, { ...alone, trackSources: true })
      const { store, sql, time } = desk
      await join(store, ['a@one.example', 'b@two.example', 'c@one.example', 'd@two.example'])
      const parsed = signup('Visitor', 'e@two.example')
      await store.admit({ ...parsed, source: { utm_source: 'hn' } })
      await sql(`update contact set created_at = ${time(Date.now() - 7_200_000)} where email = 'b@two.example'`)
      const chosen = async (which: Candidates) => {
        const { total } = await desk.operator.countInvitable(which)
        const { done } = await invite(desk, undefined, which)
        assert.equal(done, total)
        return done
      }
      assert.equal(await chosen({ until: new Date(Date.now() - 3_600_000) }), 1)
      assert.equal(await chosen({ since: new Date(Date.now() + 3_600_000) }), 0)
      assert.equal(await chosen({ source: 'hn' }), 1)
      assert.equal(await chosen({ domain: 'ONE.example', search: 'c@' }), 1)
      const addresses = ['A@One.example', 'b@two.example', 'nobody@example.com']
      assert.deepEqual(await invite(desk, undefined, { addresses }), {
        done: 1,
        missing: [
          { address: 'b@two.example', state: 'invited' },
          { address: 'nobody@example.com', state: null },
        ],
      })
      assert.equal((await invite(desk, undefined, { addresses: [] })).done, 0, 'nobody is not everybody')
      const left = (await all(desk)).filter(({ state }) => state === 'listed')
      assert.deepEqual(who(left), ['d@two.example'])
    })

    test('who is held or pending is not invited, and signs up again as one who is known', async t => {
      const desk = await openDesk(make, t, { holds: { above: 2, window: 3_600_000, suspicious: false } })
      const { store } = desk
      await store.settle(await pendingNow(store, 'listed@example.com'), { is: 'listed', joined: true })
      await pendingNow(store, 'pending@example.com')
      assert.equal((await store.admit(signup('Visitor', 'held@example.com'))).is, 'held now')
      const addresses = ['pending@example.com', 'held@example.com', 'listed@example.com']
      assert.deepEqual(await invite(desk, undefined, { addresses }), {
        done: 1,
        missing: [
          { address: 'pending@example.com', state: 'pending' },
          { address: 'held@example.com', state: 'held' },
        ],
      })
      assert.deepEqual(await invite(desk), { done: 0, missing: [] })
      assert.deepEqual(await store.admit(signup('Again', 'LISTED@example.com')), { is: 'already listed' })
      assert.deepEqual(who(await invitedIn(desk)), ['listed@example.com'])
    })

    test('without a provider, a visitor who was invited hears what a known one hears, and stays invited', async t => {
      const desk = await listed(make, t, 1)
      await invite(desk)
      const [before] = await invitedIn(desk)
      assert.deepEqual(await desk.store.admit(signup('Again', 'V1@example.com')), { is: 'already listed' })
      assert.deepEqual(await invitedIn(desk), [before])
    })

    test('operators who invite at once each invite as many as they asked for, and nobody is invited twice', async t => {
      const desk = await listed(make, t, 900)
      const done = await Promise.all(Array.from({ length: 3 }, () => invite(desk, 270)))
      assert.deepEqual(
        done.map(each => each.done),
        [270, 270, 270],
      )
      const claimed = await desk.store.claim('webhook', 2_000)
      assert.equal(claimed.length, 810)
      assert.equal(new Set(emailsOf(claimed)).size, 810)
      assert.deepEqual(who(await invitedIn(desk)), visitors(1, 810))
    })

    test('it stops between two steps, and the next call takes the next', async t => {
      const desk = await listed(make, t, 400)
      const stop = new AbortController()
      const progress = () => stop.abort()
      const first = await desk.operator.invite({}, 300, news, { progress, signal: stop.signal })
      assert.ok(first.done > 0 && first.done < 300, `${first.done}`)
      assert.equal((await invite(desk, 300 - first.done)).done, 300 - first.done)
      assert.deepEqual(who(await invitedIn(desk)), visitors(1, 300))
    })

    test('a code is redeemed once, however many ask at once; nobody else has it', async t => {
      const desk = await listed(make, t, 2)
      const { store } = desk
      await invite(desk)
      const [ada, bob] = await invitedIn(desk)
      const { code, at } = ada!.invitation!
      const known = { email: 'v1@example.com', name: 'Visitor', invitedAt: at }
      assert.deepEqual(await store.invitation(code), { ...known, redeemedAt: null })
      const answers = await Promise.all(Array.from({ length: 8 }, () => store.redeem(code)))
      const [{ redeemedAt } = { redeemedAt: null }] = answers.filter(each => each !== null)
      assert.ok(redeemedAt !== null && Math.abs(Date.now() - redeemedAt.getTime()) < 60_000)
      for (const answer of [...answers, await store.redeem(code), await store.invitation(code)]) {
        assert.deepEqual(answer, { ...known, redeemedAt })
      }
      const other = [...code].toReversed().join('')
      for (const wrong of [other, code.toLowerCase(), '', bob!.id]) {
        assert.deepEqual([await store.invitation(wrong), await store.redeem(wrong)], [null, null])
      }
      assert.equal(await desk.operator.addressOf(code), 'v1@example.com')
      assert.equal(await desk.operator.addressOf(other), undefined)
      assert.equal((await store.invitation(bob!.invitation!.code))?.redeemedAt, null)
      const { contacts, redeemed } = await desk.operator.counts()
      assert.deepEqual([contacts, redeemed], [{ unconfirmed: 0, pending: 0, held: 0, listed: 0, invited: 2 }, 1])
      assert.equal(await store.countListed(), 2)
      await desk.operator.erase('v1@example.com')
      assert.deepEqual([await store.invitation(code), await store.redeem(code)], [null, null])
    })

    test('what waits to be told is as old as the invitation, and not as the signup', async t => {
      const desk = await listed(make, t, 1)
      const { sql, time } = desk
      await invite(desk)
      const month = Date.now() - 2_600_000_000
      await sql(`update contact set created_at = ${time(month)}, event_at = ${time(month)}`)
      const waiting = (await desk.operator.counts()).deliveries.filter(({ state }) => state === 'waiting')
      assert.equal(waiting.length, 2)
      for (const { oldest } of waiting) assert.ok(Date.now() - oldest!.getTime() < 60_000)
    })

    test('a digest counts those who were invited apart, and names only those who joined', async t => {
      const desk = await listed(make, t, 3)
      await invite(desk, 2)
      await join(desk.store, ['new@example.com'])
      const digest = await desk.store.claimDigest('webhook', 10, 1_000)
      assert.ok(digest !== null && typeof digest === 'object')
      const { deliveries, invited, names } = digest
      assert.deepEqual([deliveries.length, invited, names], [3, 2, ['Visitor']])
    })

    test('an import restores an invitation as it was, and tells nobody', async t => {
      const desk = await listed(make, t, 2)
      await invite(desk, 1)
      const [{ invitation, ...contact }] = (await invitedIn(desk)) as [Contact]
      const { code } = invitation!
      const redeemed = await desk.store.redeem(code)
      await desk.sql('delete from contact')
      const { id, state, createdAt } = contact
      const kept = { code, at: invitation!.at, redeemedAt: redeemed!.redeemedAt! }
      const entry = { signup: signup('Visitor', contact.email), id, state, createdAt, invitation: kept }
      const announcement = { eventName: 'waitlist.joined', ...alone, asks: null }
      const wish = { announcement, keepsMailboxes: false, dryRun: false, made() {}, ...course }
      const batches = async function* () {
        yield [entry]
      }
      assert.equal((await desk.operator.importContacts(batches(), wish)).added, 1)
      assert.deepEqual((await invitedIn(desk))[0]?.invitation, { ...kept, name: undefined })
      assert.deepEqual(await desk.store.redeem(code), redeemed)
      assert.deepEqual(await desk.store.claim('webhook', 10), [])
      assert.equal((await invite(desk)).done, 0)
    })

    test('histories: whatever happens, the first who came are invited, once each, and their codes stay theirs', async t => {
      const options = { seed: seedOf(t), numRuns: isSlow ? 60 : 4, endOnFailure: true }
      await fc.assert(
        fc.asyncProperty(fc.array(deed, { minLength: 5, maxLength: 25 }), deeds => live(make, t, deeds)),
        options,
      )
    })
  })
}

type Deed =
  | { readonly is: 'join' | 'invite' | 'two at once'; readonly count: number }
  | { readonly is: 'invite one' | 'remove' | 'redeem' | 'again'; readonly which: number }
  | { readonly is: 'restart' }

const which = fc.nat({ max: 20 })
const count = fc.integer({ min: 1, max: 6 })
const deed: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ is: fc.constantFrom('join', 'join', 'invite', 'two at once'), count }),
  fc.record({ is: fc.constantFrom('invite one', 'remove', 'redeem', 'again'), which }),
  fc.constant({ is: 'restart' } as const),
)

/** Somebody in the model. The code is learnt when it is first seen. */
interface Person {
  readonly email: string
  invited: boolean
  code?: string | undefined
  redeemedAt?: Date
}

async function live(make: MakeDesk, t: TestContext, deeds: readonly Deed[]): Promise<void> {
  const desk = await openDesk(make, t, alone)
  let { store } = desk
  let people: Person[] = []
  let joined = 0
  const inviteFirst = (most: number) => {
    const chosen = people.filter(({ invited }) => !invited).slice(0, most)
    for (const each of chosen) each.invited = true
    return chosen.length
  }
  const someone = (index: number) => people[index % people.length]

  for (const deed of deeds) {
    switch (deed.is) {
      case 'join': {
        const emails = visitors(joined + 1, joined + deed.count)
        joined += deed.count
        await join(store, emails)
        people.push(...emails.map(email => ({ email, invited: false })))
        break
      }
      case 'invite':
        assert.equal((await invite(desk, deed.count)).done, inviteFirst(deed.count))
        break
      case 'two at once': {
        const done = await Promise.all([invite(desk, deed.count), invite(desk, deed.count)])
        assert.equal(done[0].done + done[1].done, inviteFirst(2 * deed.count))
        break
      }
      case 'restart':
        await store.close()
        store = await desk.place.open(alone)
        t.after(store.close)
        break
      default: {
        const person = someone(deed.which)
        if (person !== undefined) await meet(desk, store, deed.is, person)
        if (deed.is === 'remove') people = people.filter(each => each !== person)
      }
    }
    await assertAsInModel(desk, people)
  }
  await store.close()
}

async function meet(desk: Desk, store: Store, deed: string, person: Person): Promise<void> {
  const { email } = person
  if (deed === 'invite one') {
    assert.equal((await invite(desk, undefined, { addresses: [email] })).done, person.invited ? 0 : 1)
    person.invited = true
  } else if (deed === 'remove') {
    assert.equal((await desk.operator.erase(email))?.state, person.invited ? 'invited' : 'listed')
    if (person.code !== undefined) assert.equal(await store.redeem(person.code), null)
  } else if (deed === 'again') {
    assert.deepEqual(await store.admit(signup('Again', email)), { is: 'already listed' })
  } else if (person.code !== undefined) {
    const redeemed = await store.redeem(person.code)
    assert.equal(redeemed?.email, email)
    if (person.redeemedAt !== undefined) assert.deepEqual(redeemed.redeemedAt, person.redeemedAt)
    person.redeemedAt = redeemed.redeemedAt!
  }
}

async function assertAsInModel(desk: Desk, people: readonly Person[]): Promise<void> {
  const contacts = await all(desk)
  assert.deepEqual(
    contacts.map(({ email, state }) => [email, state]),
    people.map(({ email, invited }) => [email, invited ? 'invited' : 'listed']),
  )
  const codes = contacts.flatMap(({ invitation }) => invitation?.code ?? [])
  assert.equal(new Set(codes).size, codes.length)
  for (const [i, { invitation }] of contacts.entries()) {
    const person = people[i]!
    person.code ??= invitation?.code
    assert.equal(invitation?.code, person.code)
    assert.deepEqual(invitation?.redeemedAt, person.redeemedAt)
  }
  const told = await desk.sql("select count(*) as told from delivery where event = 'invited'")
  assert.equal(Number(told[0]!.told), codes.length * destinations.length)
}
