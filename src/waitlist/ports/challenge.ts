import type { Proof } from '../../signup/contact.ts'
import type { Failure } from './destination.ts'

/** What a solution is worth. */
export type Verdict =
  /** The store sees to it that a proof is good for one address. */
  | { readonly is: 'solved'; readonly proof: Proof }
  | { readonly is: 'unsolved'; readonly why: 'wrong' | 'expired' }
  /** The verifier could not be asked: the signup is held. `why` is for the log. */
  | { readonly is: 'unverified'; readonly why: string }
  /** Our own secret or settings are refused: no signup can be taken. `why` is for the log. */
  | { readonly is: 'misconfigured'; readonly why: string }

/** What puts the solution of a vendor's challenge into a form. `src/form/form-challenge.js` reads it as it is. */
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

  /** The member of a signup's body that has the solution, as the vendor's widget names it. */
  readonly member: string

  /** Whose it is. */
  readonly title: string

  /** Null: there is none, since the form solves the challenge itself. */
  readonly widget: Widget | null

  /** A new challenge as JSON, where this service makes them; null: the widget gets them from its vendor. */
  readonly issue: (() => Promise<string>) | null

  /**
   * Judges a solution: 1..`SOLUTION_MAX` characters. `address` is that of the visitor, if it is known. `signal` aborts the
   * call. Never rejects.
   */
  verify(solution: string, address: string | null, signal: AbortSignal): Promise<Verdict>

  /** Tries secret and settings: null when all is good. Changes nothing and never rejects. */
  check(signal: AbortSignal): Promise<Failure | null>

  close(): Promise<void>
}

/** Characters of a solution. Vendors document up to 2,048; those of some are longer. */
export const SOLUTION_MAX = 8_192
