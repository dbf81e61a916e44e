import assert from 'node:assert/strict'
import { Agent, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import { eventId } from '../../src/signup/contact.ts'
import type { StoredContact } from '../store/place.ts'
import type { Received } from './receiver.ts'

export interface SignupAnswer {
  readonly status: number
  readonly alreadyExisted?: boolean
}

/** Milliseconds; whoever is answered later, or not at all on an open connection, was left hanging. */
const HANGING = 60_000

/** Null: no whole answer came, so nothing was promised. Rejects when it takes too long. */
export function signUp(
  baseUrl: string,
  agent: Agent,
  email: string,
  more: Record<string, string> = {},
): Promise<SignupAnswer | null> {
  const request = baseUrl.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const posted = request(
      `${baseUrl}/api/waitlist`,
      { method: 'POST', agent, headers: { 'content-type': 'application/json', ...more } },
      response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', chunk => {
          text += chunk
        })
        response.on('error', () => resolve(null))
        response.on('close', () => {
          clearTimeout(timer)
          if (!response.complete) return resolve(null)
          // A balancer's own refusal may be a page.
          const isJson = response.headers['content-type']?.includes('json')
          const { alreadyExisted } = isJson ? JSON.parse(text) : {}
          resolve({ status: response.statusCode!, alreadyExisted })
        })
      },
    )
    const timer = setTimeout(() => {
      reject(new Error(`no answer for ${HANGING} ms`))
      posted.destroy()
    }, HANGING)
    posted.on('error', () => {
      clearTimeout(timer)
      resolve(null)
    })
    posted.end(JSON.stringify({ name: 'Zebulon Quixote', email }))
  })
}

/** What one visitor is told. */
export interface Told {
  readonly status: number
  readonly error?: string
  readonly alreadyExisted?: boolean
  readonly automationTriggered?: boolean
}

/** One signup on a connection of its own, with what else is in its body. Null: no whole answer came. */
export async function visit(
  { baseUrl }: { readonly baseUrl: string },
  email: string,
  more: object = {},
): Promise<Told | null> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'Zebulon Quixote', email, ...more })
  try {
    const response = await fetch(`${baseUrl}/api/waitlist`, { method: 'POST', headers, body })
    return { status: response.status, ...((await response.json()) as object) }
  } catch {
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
  /** Where a client sends its next signup. */
  to(client: number): string
  /** Told of every outcome. False: this client stops. */
  goesOn(answer: SignupAnswer | null, client: number): boolean
}

/** Signs up on keep-alive connections: mostly new addresses, some that were sent before. */
export async function load({
  ledger,
  clients,
  agent = new Agent({ keepAlive: true, maxSockets: clients }),
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
      const answer = await signUp(to(number), agent, email)
      ledger.note(email, answer)
      if (!goesOn(answer, number)) return
      if (rest > 0) await wait(rest)
    }
  }
  try {
    await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  } finally {
    agent.destroy()
  }
}

/** What was told about one address. */
interface Outcomes {
  acknowledged: number
  new: number
  /** Attempts without an answer, or with one that says nothing about the address. */
  unclear: number
}

/** Everything that clients were told, however the service ended meanwhile. */
export class Ledger {
  readonly #told = new Map<string, Outcomes>()
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
    const named = (which: (told: Outcomes, email: string) => boolean) =>
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

/** Every contact's event arrived, at least once, always under its one id; and no other event did. */
export function assertDelivered(contacts: readonly StoredContact[], received: readonly Received[]): void {
  const told = new Map<string, Set<string>>()
  for (const { headers, json } of received) {
    const ids = told.get(json.data.email) ?? new Set()
    told.set(json.data.email, ids.add(headers['webhook-id']!))
  }
  assert.deepEqual(
    new Map(contacts.map(contact => [contact.email, new Set([eventId(contact, 'joined')])])),
    new Map(contacts.map(({ email }) => [email, told.get(email)])),
  )
  assert.equal(told.size, contacts.length)
}
