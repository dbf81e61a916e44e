import assert from 'node:assert/strict'
import { replay } from './commands.ts'
import { ASKED_TO_WAIT } from './line.ts'
import type { Work } from './processes.ts'
import { type Abilities, automationOf } from './vendor.ts'
import type { World } from './world.ts'

/** A day, and the fifth that waits are scattered by. */
const LONGEST_WAIT = 29 * 3_600_000

/** A breaker that saw an outage makes a probe within this time. */
const PROBE = 5_000
/** Attempts of one contact that failed on their own, after which it may be left alone for more than half a minute. */
const PUT_OFF = 4

/** Everybody behaves from now on, and what was said to be completed is completed in the time that was promised. */
export async function comeToRest(world: World): Promise<void> {
  const { place, vendors, receiver, time, processes } = world
  processes.destine(null)
  for (const line of [...vendors.flatMap(({ creating, starting }) => [creating, starting]), receiver.line]) {
    line.arrive()
    line.next()
    line.always(null)
  }
  receiver.vanish(false)

  const completeAll = () =>
    end('hand-overs', world.background, () =>
      place.pending().reduce<number | null>((first, { due }) => Math.min(first ?? due, due), null),
    )
  const deliverAll = () => end('deliveries', world.outboxes, place.nextDue)

  // Who was asked to wait is not asked before.
  if (vendors.some(({ creating }) => creating.hasAskedToWait())) await processes.pass(ASKED_TO_WAIT)
  const held = new Set(place.pending().flatMap(({ id, leased }) => (leased ? [id] : [])))
  const waiting = () => place.pending().filter(({ id, attempts }) => !held.has(id) && attempts < PUT_OFF)
  for (let second = 0; second < 30 && waiting().length > 0; second++) {
    await processes.pass(1_000)
    await processes.through(...world.background())
  }
  assert.deepEqual(waiting(), [], 'still pending when the vendor had answered for 30 s')
  // The rest belonged to processes that died or sleep: their leases end.
  await completeAll()
  // One that has heard 410 does not send any more.
  processes.restart()
  await deliverAll()
  await processes.through(...processes.wake(0))
  await completeAll()
  await deliverAll()
  await replay(world)
  await deliverAll()
  for (const { destination, email } of place.abandoned()) {
    const vendor = vendors.find(({ name }) => destination === automationOf(name))
    assert.ok(vendor !== undefined && vendor.starts(email) > 0, `${email} was abandoned`)
  }

  async function end(what: string, work: () => Work[], nextDue: () => number | null): Promise<void> {
    const longest = time.now() + LONGEST_WAIT
    for (let round = 0; round < 20; round++) {
      const due = nextDue()
      if (due === null) return
      assert.ok(due <= longest, `one of the ${what} waits for longer than any rule says`)
      await processes.pass(Math.max(PROBE, due - time.now()))
      await processes.through(...work())
    }
    assert.fail(`${what} do not come to an end`)
  }
}

/** What must be true of an address in every history, once it has come to rest. */
export function judge(world: World, email: string, { recognisesOwn }: Abilities): void {
  const { place, vendors, receiver, stored, listedBy, removed, owned } = world
  const contacts = place.contacts(email)
  assert.ok(contacts.length <= 1, `${email}: ${contacts.length} contacts`)
  const contact = contacts[0]
  const events = contact?.events ?? 0

  if (contact === undefined) {
    for (const vendor of vendors) {
      const maker = vendor.madeBy(email)
      // One vendor has what the other refuses.
      const isOurs = maker !== undefined && maker !== 'owner' && !removed.has(email)
      assert.ok(!isOurs, `${email} is at the ${vendor.name}, where we made it, and not here`)
    }
  } else {
    assert.equal(contact.state, 'listed', email)
    const vendor = listedBy.get(contact.id)
    const maker = vendor?.madeBy(email)
    assert.ok(maker !== undefined, `${email} is listed here, and not there`)
    if (maker === 'owner') {
      if (recognisesOwn) assert.equal(events, 0, `${email}: events of a contact that the vendor had before`)
    } else if (maker === contact.id || !removed.has(email)) {
      assert.equal(contact.id, maker, `${email}: we made it`)
      assert.equal(events, 1, `${email}: events of a contact that we made`)
    }
    for (const each of vendors) {
      const expected = each === vendor ? events : 0
      assert.equal(each.starts(email), expected, `${email}: starts of the automation of the ${each.name}`)
    }
  }
  assert.equal(contact?.deliveries ?? 0, 2 * events, `${email}: deliveries`)
  assert.equal(receiver.events(email), events, `${email}: events that the receiver knows`)

  const hasRefused = vendors.some(vendor => vendor.hasRefused(email))
  const listedOrRefused = contact !== undefined || hasRefused
  if (stored.has(email)) assert.ok(listedOrRefused, `${email} was stored, and is lost`)

  const visits = world.visits.filter(visit => visit.email === email)
  const told = (...what: string[]) => visits.filter(visit => what.includes(visit.told))
  if (told('new', 'known').length > 0) assert.notEqual(contact, undefined, `${email} was told so, and is lost`)
  if (told('kept', 'lost').length > 0) assert.ok(listedOrRefused, `${email} was kept, and is lost`)
  if (told('refused').length > 0) assert.ok(hasRefused, `${email} was refused by nobody`)
  for (const { told, unhindered } of visits) {
    if (unhindered) assert.match(told, /^(new|known|refused)$/, `${email} was told so, with nothing in the way`)
  }
  assert.ok(told('new').length <= 1, `${email} was told twice that it is new`)
  if (told('new').length === 1) assert.equal(events, 1, `${email} was told that it is new`)
  for (const known of told('known')) {
    // Somebody signed up before, or at the same time; or the owner had it.
    const others = told('new', 'kept', 'lost', 'nothing', 'failed').some(other => other.from < known.to)
    const earlier = told('known').some(other => other.to < known.from)
    const reason = others || earlier || (owned(known.vendor, email) ?? Number.POSITIVE_INFINITY) < known.to
    assert.ok(reason, `${email} was told on its first signup that it is known`)
  }
}
