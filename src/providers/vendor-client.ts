import { idAt, judge, judgeDelivery, memberAt, type Refused, type Reply, textAt } from '../outbound/reply.ts'
import type { Contact } from '../signup/contact.ts'
import type { DeliveryResult, Failure } from '../waitlist/ports/destination.ts'
import type { Creation, Removal } from '../waitlist/ports/provider.ts'

/**
 * What came of a call. Without an answer its status is 0, as in `fetch`: a client treats it like an answer that it does not
 * understand, and `failure` says why there is none.
 */
export class Answer {
  readonly status: number
  readonly json: unknown
  readonly summary: string
  readonly #reply: Reply | Failure

  constructor(reply: Reply | Failure, means?: Meaning) {
    const isAnswered = reply.is === 'answered'
    this.status = isAnswered ? reply.status : 0
    this.json = isAnswered ? reply.json : undefined
    this.summary = isAnswered ? reply.summary : reply.why
    this.#reply = (isAnswered && means?.(reply)) || reply
  }

  /** 2xx. */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300
  }

  /** The member of the body at a path, if there is one. */
  at(...path: Path): unknown {
    return memberAt(this.json, ...path)
  }

  text(...path: Path): string | undefined {
    return textAt(this.json, ...path)
  }

  id(...path: Path): string | undefined {
    return idAt(this.json, ...path)
  }

  /** The list at a path, if this is a 200 with one. */
  list(...path: Path): readonly unknown[] | undefined {
    const list = this.at(...path)
    return this.status === 200 && Array.isArray(list) ? list : undefined
  }

  /** What it means unless something more specific is known. */
  get failure(): Failure {
    return this.#reply.is === 'answered' ? judge(this.#reply) : this.#reply
  }

  /** The same about one event or one known contact, which may be refused by itself. */
  get refusal(): Failure | Refused {
    return this.#reply.is === 'answered' ? judgeDelivery(this.#reply) : this.#reply
  }

  deliveredIf(done: boolean): DeliveryResult {
    return done ? { is: 'delivered' } : this.refusal
  }

  removedIf(done: boolean): Removal {
    return done ? { is: 'removed' } : this.failure
  }
}

type Path = readonly (string | number)[]

/** What an answer means whatever was asked; false: nothing special. */
export type Meaning = (reply: Reply) => Failure | false

/** What a visitor hears whose address a vendor does not take. */
export const INVALID: Creation = { is: 'refused', reason: 'it is not valid there' }

export const misconfigured = (why: string): Failure => ({ is: 'misconfigured', why })

/** Vendors keep a first and a last name; most people type one or two words. */
export function splitName(name: string): { readonly first: string; readonly last: string | undefined } {
  const [first = name, ...rest] = name.split(/\s+/)
  return { first, last: rest.length === 0 ? undefined : rest.join(' ') }
}

/** Calls of one attempt that may be under way at once. Every vendor allows as many. */
const AT_ONCE = 5

/**
 * Does the same for each of several lists, tags and the like: some at once, since one after another may take longer than
 * the timeout, in every attempt. Resolves with the first failure, after which nothing is begun; null: all are done.
 */
export async function forAll<Item, Why>(items: readonly Item[], work: (item: Item) => Promise<Why | null>) {
  const failures: Why[] = []
  const left = items.values()
  async function proceed(): Promise<void> {
    for (const item of left) {
      const failure = await work(item)
      if (failure !== null) failures.push(failure)
      if (failures.length > 0) return
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, proceed))
  return failures[0] ?? null
}

/** Milliseconds by which two clocks may differ when the age of a contact shows whether it is ours. */
const CLOCKS = 60_000

/**
 * Whether a contact that the vendor created at `created` can be ours: it is not older than the signup. Undefined: the time
 * makes no sense.
 */
export function isYoungerThanSignup(created: string | undefined, contact: Contact): boolean | undefined {
  const time = Date.parse(created ?? '')
  return Number.isNaN(time) ? undefined : time >= contact.createdAt.getTime() - CLOCKS
}
