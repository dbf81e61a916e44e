import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, fetch } from 'undici'
import { eventId } from '../../src/signup/contact.ts'
import type { StoredContact } from '../store/place.ts'
import type { Received } from './receiver.ts'

/** The answer that a visitor gets. */
export interface SignupAnswer {
  readonly status: number
  readonly error?: string
  readonly alreadyExisted?: boolean
  readonly automationTriggered?: boolean
}

/** Milliseconds after which a visitor was left hanging. */
const HANGING = 60_000

/** One signup, with what else is in its body. Null: no whole answer came, so nothing was promised. Rejects if none comes for a minute. */
export async function visit(
  { baseUrl }: { readonly baseUrl: string },
  email: string,
  more: object = {},
  dispatcher?: Agent,
): Promise<SignupAnswer | null> {
  const signal = AbortSignal.timeout(HANGING)
  try {
    const response = await fetch(`${baseUrl}/api/waitlist`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Zebulon Quixote', email, ...more }),
      signal,
      ...(dispatcher && { dispatcher }),
    })
    return { status: response.status, ...((await response.json()) as object) }
  } catch (error) {
    if (signal.aborted) throw error
    return null
  }
}

export interface Load {
  readonly ledger: Ledger
  /** Connections, each of which sends one signup after the other. */
  readonly clients: number
  /** What connects, and is destroyed at the end. */
  readonly agent?: Agent
  /** Addresses of its own are made from it. */
  readonly round: number
  /** Milliseconds between an answer and the next signup of a client. */
  readonly rest?: number
  /** The base URL of a client's next signup. */
  to(client: number): string
  /** Called with every outcome; a client whose outcome is answered with false stops. */
  goesOn(answer: SignupAnswer | null, client: number): boolean
}

/** Signs up on keep-alive connections: mostly new addresses, some that were sent before. */
export async function load({
  ledger,
  clients,
  agent = new Agent({ connections: clients }),
  round,
  rest = 0,
  to,
  goesOn,
}: Load): Promise<void> {
  const client = async (number: number): Promise<void> => {
    for (let i = 0; ; i++) {
      // Every third address is shared: all clients, in all rounds, race for it.
      const address = i % 3 === 0 ? `shared-${round % 3}-${i}` : `own-${round}-${number}-${i}`
      const email = `${address}@${number % 2 ? 'quixote' : 'QUIXOTE'}.example`
      const answer = await visit({ baseUrl: to(number) }, email, {}, agent)
      ledger.note(email, answer)
      if (!goesOn(answer, number)) return
      if (rest > 0) await wait(rest)
    }
  }
  try {
    await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  } finally {
    await agent.destroy()
  }
}

/** How often an address was acknowledged, was called new, and got no answer from which anything follows. */
interface Outcomes {
  acknowledged: number
  new: number
  unclear: number
}

/** Every answer that clients got, by address, over all ends of the service. */
export class Ledger {
  readonly #outcomes = new Map<string, Outcomes>()
  acknowledged = 0

  note(email: string, answer: SignupAnswer | null): void {
    const key = email.toLowerCase()
    const outcomes = this.#outcomes.get(key) ?? { acknowledged: 0, new: 0, unclear: 0 }
    this.#outcomes.set(key, outcomes)
    if (answer?.status !== 200) {
      // The rate limiter refuses before anything is done.
      if (answer?.status !== 429) outcomes.unclear++
      return
    }
    assert.equal(typeof answer.alreadyExisted, 'boolean')
    this.acknowledged++
    outcomes.acknowledged++
    if (!answer.alreadyExisted) outcomes.new++
  }

  /** Addresses that may be on the list, and may not. */
  unclear(): string[] {
    return [...this.#outcomes]
      .filter(([, outcomes]) => outcomes.unclear > 0 && outcomes.acknowledged === 0)
      .map(([email]) => email)
  }

  /** Some address that was acknowledged. */
  some(): string {
    return [...this.#outcomes].find(([, outcomes]) => outcomes.acknowledged > 0)![0]
  }

  /** Every answer was true, and is true of what is stored: each contact once, with one event. */
  assertTrueOf(contacts: readonly StoredContact[]): void {
    const stored = new Set<string>()
    for (const { email, events, state } of contacts) {
      const key = email.toLowerCase()
      assert.deepEqual([events, state], [1, 'listed'], key)
      assert.ok(!stored.has(key), `${key} is stored twice`)
      assert.ok(this.#outcomes.has(key), `${key} is stored, and was never sent`)
      stored.add(key)
    }
    for (const [email, outcomes] of this.#outcomes) {
      const what = `${email}: ${JSON.stringify(outcomes)}`
      if (outcomes.acknowledged > 0) assert.ok(stored.has(email), `acknowledged, and not in the database: ${what}`)
      assert.ok(outcomes.new <= 1, `called new more than once: ${what}`)
      if (outcomes.unclear === 0 && outcomes.acknowledged > 0)
        assert.equal(outcomes.new, 1, `never called new: ${what}`)
    }
  }
}

/** Every contact's event arrived, at least once, always under its one id; and no other event did. */
export function assertDelivered(contacts: readonly StoredContact[], received: readonly Received[]): void {
  const ids = new Map<string, Set<string>>()
  for (const { headers, json } of received) {
    const { email } = json.data
    ids.set(email, (ids.get(email) ?? new Set()).add(headers['webhook-id']!))
  }
  assert.deepEqual(ids, new Map(contacts.map(contact => [contact.email, new Set([eventId(contact, 'joined')])])))
}
