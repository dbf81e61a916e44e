import assert from 'node:assert/strict'
import { join as joinPath } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { allVendors } from '../../src/providers/list.ts'
import { type Joined, join } from '../../src/signup/join.ts'
import { events } from '../../src/waitlist/delivery/events.ts'
import { handOver } from '../../src/waitlist/delivery/handover.ts'
import { quickFolder } from '../harness/folder.ts'
import { type Misbehaviour, startReceiver } from '../harness/receiver.ts'
import { recordingLog } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'
import { storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'
import { opened, type VendorUnderTest } from './provider.ts'

const vendors = await allVendors()

const MINUTE = 60_000
const SEEDS = isSlow ? [1, 2, 3] : [2]

/** Long enough for any answer that comes, and short, since some never come. */
const TIMEOUT = 400

/** A bare 429 makes every later call wait for seconds: tested elsewhere. */
// biome-ignore format: a list to be read as one
const among: readonly Misbehaviour[] = [
  'hang after', 'reset before', 'reset after', '500 before', '500 after', '502 with HTML', '503', '429 with Retry-After',
  'truncated JSON', 'cut in the middle', 'wrong types',
]

/**
 * The whole way, with the real store: a third of all requests goes wrong, in every way. In the end every signup is
 * listed here and there, with all that the settings join it to, and its automation started once; what the vendor cannot promise is allowed to it.
 */
export function convergence(under: VendorUnderTest): void {
  // A pace by the minute would make a test of more calls wait: those vendors' joins are in the contract alone.
  const joining = vendors[under.vendor].rate.per < MINUTE ? under.joining : undefined
  const { promises } = vendors[under.vendor]
  describe('a vendor that misbehaves', { concurrency: true }, () => {
    for (const seed of SEEDS) {
      test(`seed ${seed}: ends with every signup, each once`, async t => {
        const fake = under.fake()
        const server = await startReceiver(t, fake.answer)
        const env = { ...under.settings(server.url), ...joining?.settings }
        const provider = await opened(t, under, env, TIMEOUT, TIMEOUT)
        const { automation } = provider
        assert.equal(automation === null, promises.repeatable === null)
        let now = Date.now()
        const clock = () => now
        const store = await storeAt(joinPath(quickFolder(t), 'waitlist.db'), {
          provider: provider.name,
          destinations: automation === null ? [] : [automation.name],
          clock,
        })
        t.after(() => store.close())
        const { log } = recordingLog()
        const random = () => 0.5
        const announce = () => {}
        const parts = { store, log, announce, clock, random }
        const handing = handOver({ ...parts, provider })
        const outbox = automation && events({ ...parts, destination: automation, now: clock })
        const { signal: leave } = new AbortController()
        const visit = (email: string): Promise<Joined> =>
          join(signup('Ada King Lovelace', email), {
            store,
            handOver: handing,
            timeout: TIMEOUT,
            inBackground: null,
            signal: leave,
            announce,
          })

        const added = ['a@example.com', 'b@example.com', 'c@example.com', 'd@example.com', 'e@example.com']
        const old = ['old-1@example.com', 'old-2@example.com']
        for (const email of old) fake.had(email)
        server.chaos(seed, 0.35, among)
        const told = new Map<string, Joined[]>()
        for (const email of [...added, ...old, added[0]!]) {
          told.set(email, [...(told.get(email) ?? []), await visit(email)])
          now += 1_000
          await handing.loop.once()
        }
        const round = async () => {
          now += 2 * MINUTE
          await handing.loop.once()
          await outbox?.loop.once()
        }
        for (let i = 0; i < 8; i++) await round()
        server.behave()
        for (let i = 0; i < 4; i++) await round()
        const isOver = async () => {
          const admissions = await Promise.all([...added, ...old].map(email => store.admit(signup('Ada', email))))
          const isTold = !promises.repeatable || added.every(email => fake.starts(email) > 0)
          return admissions.every(({ is }) => is === 'already listed') && isTold
        }
        // A limit of the vendor may need real seconds, which are on no clock of a test's.
        for (let i = 0; i < 20 && !(await isOver()); i++) {
          await wait(500)
          await round()
        }

        for (const email of [...added, ...old]) {
          assert.equal((await store.admit(signup('Ada', email))).is, 'already listed', `${email} is not listed`)
          assert.equal(fake.count(email), 1, `${email} at the vendor`)
        }
        const joins = joining !== undefined
        for (const email of added) {
          if (joins) assert.equal(fake.joined!(email), true, `${email} is on the lists`)
          const starts = fake.starts(email)
          if (promises.repeatable) assert.equal(starts, 1, `automations of ${email}`)
          else assert.ok(starts <= 1, `${starts} automations of ${email}`)
          const existed = told.get(email)!.filter(({ is }) => is === 'known').length
          assert.ok(
            existed < told.get(email)!.length || email === added[0],
            `${email} was new, and told that it existed`,
          )
        }
        for (const email of old) {
          if (joins) assert.equal(fake.joined!(email), false, `${email} was there before`)
          const starts = fake.starts(email)
          if (promises.recognisesOwn) assert.equal(starts, 0, `${email} was there before`)
          assert.ok(starts <= 1)
        }
        const said = [...told.values()].flat()
        assert.ok(said.every(({ is }) => is === 'new' || is === 'known' || is === 'kept'))
      })
    }
  })
}
