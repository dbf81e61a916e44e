import assert from 'node:assert/strict'
import { replay } from './commands.ts'
import { ASKED_TO_WAIT } from './line.ts'
import { type Abilities, VENDOR } from './vendor.ts'
import type { World } from './world.ts'

/** A day, and the fifth that waits are scattered by. */
const LONGEST_WAIT = 29 * 3_600_000

/** Everybody behaves from now on, and what was said to be completed is completed in the time that was promised. */
export async function comeToRest(world: World): Promise<void> {
  const { place, vendor, receiver, time, processes } = world
  processes.destine(null)
  for (const line of [vendor.creating, vendor.starting, receiver.line]) {
    line.arrive()
    line.next()
    line.always(null)
  }
  receiver.vanish(false)

  // What one process has seen of an outage the others do not know; but one that starts takes nothing for granted.
  if (processes.wereSeveral()) processes.restart()
  // Whoever was asked to wait is not looked for before, unless somebody else finds that all is well.
  if (vendor.creating.hasAskedToWait()) await processes.pass(ASKED_TO_WAIT)
  const held = new Set(place.pending().flatMap(({ id, leased }) => (leased ? [id] : [])))
  const waiting = () => place.pending().filter(({ id }) => !held.has(id))
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
  replay(world)
  await deliverAll()
  for (const { destination, email } of place.abandoned()) {
    assert.ok(destination === VENDOR && vendor.starts(email) > 0, `${email} was given up`)
  }

  async function completeAll(): Promise<void> {
    for (let step = 0; step < 12 && place.pending().length > 0; step++) {
      await processes.pass(10_000)
      await processes.through(...world.background())
    }
    assert.deepEqual(place.pending(), [], 'still pending after two minutes')
  }

  async function deliverAll(): Promise<void> {
    const longest = time.now() + LONGEST_WAIT
    for (let round = 0; round < 20; round++) {
      const due = place.nextDue()
      if (due === null) return
      assert.ok(due <= longest, 'a delivery waits for longer than any rule says')
      await processes.pass(Math.max(0, due - time.now()))
      await processes.through(...world.outboxes())
    }
    assert.fail('deliveries do not come to an end')
  }
}

/** What must be true of an address in every history, once it has come to rest. */
export function judge(world: World, email: string, { recognisesOwn }: Abilities): void {
  const { place, vendor, receiver, stored, owned } = world
  const contacts = place.contacts(email)
  assert.ok(contacts.length <= 1, `${email}: ${contacts.length} contacts`)
  const contact = contacts[0]
  const events = contact?.events ?? 0
  const maker = vendor.madeBy(email)

  if (contact !== undefined) {
    assert.equal(contact.state, 'listed', email)
    assert.notEqual(maker, undefined, `${email} is listed here, and not there`)
  }
  if (maker === undefined) assert.equal(contact, undefined, email)
  else if (maker !== 'owner') {
    assert.equal(contact?.id, maker, `${email}: we made it`)
    assert.equal(events, 1, `${email}: events of a contact that we made`)
  } else if (recognisesOwn) assert.equal(events, 0, `${email}: events of a contact that the vendor had before`)
  assert.equal(contact?.deliveries ?? 0, 2 * events, `${email}: deliveries`)
  assert.equal(receiver.events(email), events, `${email}: events that the receiver knows`)
  assert.equal(vendor.starts(email), events, `${email}: starts of the automation`)

  const listedOrRefused = contact !== undefined || vendor.hasRefused(email)
  if (stored.has(email)) assert.ok(listedOrRefused, `${email} was stored, and is lost`)

  const visits = world.visits.filter(visit => visit.email === email)
  const told = (...what: string[]) => visits.filter(visit => what.includes(visit.told))
  if (told('new', 'known').length > 0) assert.notEqual(contact, undefined, `${email} was told so, and is lost`)
  if (told('kept').length > 0) assert.ok(listedOrRefused, `${email} was kept, and is lost`)
  if (told('refused').length > 0) assert.ok(vendor.hasRefused(email), `${email} was refused by nobody`)
  for (const { told, unhindered } of visits) {
    if (unhindered) assert.match(told, /^(new|known|refused)$/, `${email} was told so, with nothing in the way`)
  }
  assert.ok(told('new').length <= 1, `${email} was told twice that it is new`)
  if (told('new').length === 1) assert.equal(events, 1, `${email} was told that it is new`)
  for (const known of told('known')) {
    // Somebody signed up before, or at the same time; or the owner had it.
    const others = told('new', 'kept', 'nothing', 'failed').some(other => other.from < known.to)
    const reason = others || (owned.get(email) ?? Number.POSITIVE_INFINITY) < known.to
    assert.ok(reason, `${email} was told on its first signup that it is known`)
  }
}
