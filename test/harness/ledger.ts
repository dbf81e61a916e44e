import assert from 'node:assert/strict'
import type { StoredContact } from '../store/place.ts'
import type { SignupAnswer } from './load.ts'

/** What was told about one address. */
interface Told {
  acknowledged: number
  new: number
  /** Attempts without an answer, or with one that says nothing about the address. */
  unclear: number
}

/** Everything that clients were told, however the service ended meanwhile. */
export class Ledger {
  readonly #told = new Map<string, Told>()
  acknowledged = 0

  note(email: string, answer: SignupAnswer | null): void {
    const key = email.toLowerCase()
    const told = this.#told.get(key) ?? { acknowledged: 0, new: 0, unclear: 0 }
    this.#told.set(key, told)
    if (answer?.status !== 200) {
      // A refusal by the limit says for certain that nothing was done.
      if (answer?.status !== 429) told.unclear++
      return
    }
    assert.equal(typeof answer.alreadyExisted, 'boolean')
    this.acknowledged++
    told.acknowledged++
    if (!answer.alreadyExisted) told.new++
  }

  /** Addresses of which nobody knows whether they are on the list. */
  unclear(): string[] {
    return [...this.#told].filter(([, told]) => told.unclear > 0 && told.acknowledged === 0).map(([email]) => email)
  }

  /** Some address that was acknowledged. */
  some(): string {
    return [...this.#told].find(([, told]) => told.acknowledged > 0)![0]
  }

  /** Everything that was told is true of what is stored: each contact once, with one event. */
  assertTrueOf(contacts: readonly StoredContact[]): void {
    const stored = new Set<string>()
    for (const { email, events, state } of contacts) {
      const key = email.toLowerCase()
      assert.equal(stored.has(key), false, `${key} is stored twice`)
      assert.equal(events, 1, `${key} has ${events} events`)
      assert.equal(state, 'listed')
      stored.add(key)
    }
    const all = [...this.#told]
    const named = (which: (told: Told, email: string) => boolean) =>
      all.filter(([email, told]) => which(told, email)).map(([email, told]) => ({ email, ...told }))
    assert.deepEqual(
      named((told, email) => told.acknowledged > 0 && !stored.has(email)),
      [],
      'acknowledged, and not in the database',
    )
    assert.deepEqual(
      named(told => told.new > 1),
      [],
      'told more than once that they are new',
    )
    assert.deepEqual(
      named(told => told.acknowledged > 0 && told.unclear === 0 && told.new !== 1),
      [],
      'every answer is known, and not exactly one said that the address is new',
    )
    const heardOf = new Set(this.#told.keys())
    assert.deepEqual(
      [...stored].filter(email => !heardOf.has(email)),
      [],
      'stored, and never sent',
    )
  }
}
