import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import fc from 'fast-check'
import type { Admission, Store } from '../../src/waitlist/ports/signups.ts'
import type { HoldRules } from '../../src/waitlist/rules/hold.ts'
import { emailKey, type Signup } from '../../src/waitlist/rules/signup.ts'
import { handClock, type MakePlace, signup } from './store.place.ts'

const WINDOW = 60_000
const PROVIDERS = ['gmail.com', 'outlook.com']
const DOMAINS = [...PROVIDERS, 'example.com']

interface Step {
  /** Milliseconds that pass before it. */
  readonly pass: number
  /** Whether all instances end and start again before it. */
  readonly restarts: boolean
  readonly crowd: readonly Signup[]
}

const visit = (who: number, domain: string, dotted: boolean, nonce: number | null): Signup => {
  const plain = signup('Visitor', `v${dotted ? '.' : ''}${who}@${domain}`)
  return nonce === null ? plain : { ...plain, proof: { nonce: String(nonce), expires: new Date(Date.UTC(2040, 0, 1)) } }
}
const visitor = fc
  .tuple(fc.nat(60), fc.constantFrom(...DOMAINS), fc.boolean(), fc.option(fc.nat(20), { freq: 2 }))
  .map(parts => visit(...parts))

const histories = fc.record({
  rules: fc.record({
    above: fc.option(fc.integer({ min: 10, max: 50 }), { freq: 2 }),
    window: fc.constant(WINDOW as number),
    suspicious: fc.boolean(),
  }),
  steps: fc.array(
    fc.record({
      pass: fc.oneof(fc.nat(WINDOW), fc.constantFrom(0, WINDOW - 1, WINDOW, 3 * WINDOW)),
      restarts: fc.boolean(),
      crowd: fc.array(visitor, { minLength: 20, maxLength: 50 }),
    }),
    { minLength: 2, maxLength: 4 },
  ),
})

/** One in which each answer comes. */
const example = {
  rules: { above: 30, window: WINDOW, suspicious: true },
  steps: [
    {
      pass: 0,
      restarts: false,
      crowd: [
        ...Array.from({ length: 22 }, (_, i) => visit(i, 'example.com', false, null)),
        ...[false, true].map(dotted => visit(1, 'gmail.com', dotted, 1)),
        ...[false, true].map(dotted => visit(1, 'gmail.com', dotted, dotted ? 2 : 1)),
      ],
    },
    { pass: 10, restarts: true, crowd: Array.from({ length: 12 }, (_, i) => visit(i, 'outlook.com', true, null)) },
    {
      pass: WINDOW - 10,
      restarts: false,
      crowd: Array.from({ length: 30 }, (_, i) => visit(Math.min(i, 28), 'example.com', true, null)),
    },
  ],
}

/** The gate in a few lines: every arrival is kept, and all are counted anew each time. */
function model({ above, suspicious }: HoldRules) {
  const known = new Map<string, 'already listed' | 'still held'>()
  const mailboxes = new Set<string>()
  const claimants = new Map<string, string>()
  const arrivals: number[] = []

  const reasonOf = (local: string, host: string, now: number): string | null => {
    if (suspicious && PROVIDERS.includes(host)) {
      const mailbox = `${host === 'gmail.com' ? local.replace('.', '') : local}@${host}`
      if (mailboxes.has(mailbox)) return 'same-mailbox'
      mailboxes.add(mailbox)
    }
    if (above !== null && arrivals.filter(at => at > now - WINDOW).length >= above) return 'above-limit'
    arrivals.push(now)
    return null
  }

  return ({ email, proof }: Signup, now: number): string => {
    const key = emailKey(email)
    if (proof !== undefined) {
      if ((claimants.get(proof.nonce) ?? key) !== key) return 'spent'
      claimants.set(proof.nonce, key)
    }
    const before = known.get(key)
    if (before !== undefined) return before
    const [local, host] = key.split('@') as [string, string]
    const reason = reasonOf(local, host, now)
    known.set(key, reason === null ? 'already listed' : 'still held')
    return reason ?? 'listed now'
  }
}

const said = (admission: Admission): string => (admission.is === 'held now' ? admission.reason : admission.is)

/**
 * Random signups at random times, over restarts, are answered as the model answers them. Where there may be two instances
 * they take turns; where there is one, all of a step come at once.
 */
export async function agreesWithModel(place: MakePlace, runs: number, t: TestContext): Promise<void> {
  const seen = new Set<string>()
  const property = fc.asyncProperty(histories, async ({ rules, steps }) => {
    const here = await place(t)
    const clock = handClock()
    const expected = model(rules)
    let stores: readonly Store[] = []
    const close = () => Promise.all(stores.map(store => store.close()))
    const open = async () => {
      const options = { holds: rules, clock: clock.read }
      stores = [await here.open(options), ...(here.another === undefined ? [] : [await here.another(options)])]
    }
    await open()
    try {
      for (const { pass, restarts, crowd } of steps as readonly Step[]) {
        clock.pass(pass)
        if (restarts && here.forgets === undefined) {
          await close()
          await open()
        }
        const answers: Promise<Admission>[] = []
        for (const [i, each] of crowd.entries()) {
          answers.push(stores[i % stores.length]!.admit(each))
          if (stores.length > 1) await answers.at(-1)
        }
        const all = (await Promise.all(answers)).map(said)
        for (const each of all) seen.add(each)
        assert.deepEqual(
          all,
          crowd.map(each => expected(each, clock.read())),
        )
      }
    } finally {
      await close()
    }
  })
  await fc.assert(property, { numRuns: runs, examples: [[example]] })
  assert.equal(seen.size, 6, [...seen].join())
}
