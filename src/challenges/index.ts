import type { Log } from '../config/operator.ts'
import type { Failure } from '../http-client/call.ts'
import type { Proof } from '../signup/contact.ts'

/** What a solution is worth. `why` of the last two is for the log. */
export type Verdict =
  /** The store sees to it that a proof is good for one address. */
  | { readonly is: 'solved'; readonly proof: Proof }
  | { readonly is: 'unsolved'; readonly why: 'wrong' | 'expired' }
  /** The verifier is away: the signup is held. */
  | { readonly is: 'unverified'; readonly why: string }
  /** Our own secret is refused: no signup can be taken. */
  | { readonly is: 'misconfigured'; readonly why: string }

/** What puts the solution of a vendor's challenge into a form. `src/form/challenge.js` reads it as it is. */
export interface Widget {
  /** The address of what loads it. */
  readonly script: string
  /** Whether that is an ES module. */
  readonly isModule: boolean
  /** Its place in the form: an element with these attributes, one of which has the site key. */
  readonly tag: string
  readonly attributes: Readonly<Record<string, string>>
  /** The object in the page that makes it ask for a new solution; null: its element does. */
  readonly api: string | null
}

/** Asks visitors to solve something that costs a bot more than them. */
export interface Challenge {
  readonly name: string
  /** The member of a signup's body that has the solution, as the widget names it. */
  readonly member: string
  /** Null: the form solves the challenge itself. */
  readonly widget: Widget | null
  /** A new challenge as JSON, where this service makes them; null: the widget gets them from its vendor. */
  readonly issue: (() => Promise<string>) | null
  /** Judges a solution of 1..`SOLUTION_MAX` characters. `visitor`: the IP address, if it is known. Never rejects. */
  verify(solution: string, visitor: string | null, stop: AbortSignal): Promise<Verdict>
  /** Tries the settings: null when they are good. Never rejects. */
  check(stop: AbortSignal): Promise<Failure | null>
}

/** Characters of a solution. Vendors document up to 2,048; those of some are longer. */
export const SOLUTION_MAX = 8_192

/** The settings of a challenge. */
export type ChallengeChoice =
  /** Null: a secret is made and kept in the store. */
  | { readonly kind: 'altcha'; readonly secret: string | null }
  | {
      readonly kind: 'turnstile' | 'hcaptcha' | 'cap'
      readonly secret: string
      /** Null: it is unknown, or in the address of Cap. */
      readonly siteKey: string | null
      /** Null: the vendor's own. */
      readonly url: string | null
    }

/** `shared` returns a random value that is the same for all instances. */
export async function openChallenge(
  choice: ChallengeChoice | null,
  shared: (name: string) => Promise<string>,
  log: Log,
): Promise<Challenge | null> {
  if (choice === null) return null
  if (choice.kind !== 'altcha') return (await import('./siteverify.ts')).siteverify(choice, log)
  const { altcha } = await import('./altcha.ts')
  return altcha(choice.secret ?? (await shared('challenge')))
}
