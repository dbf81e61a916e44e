import { createHash } from 'node:crypto'
import { emailKey, type Signup } from '../waitlist/rules/signup.ts'

/** The gate through which new contacts pass, where some may be held. Both engines have one. */

/** What a signup comes with, apart from its name, address and source. */
export interface Credentials {
  readonly proof?: { readonly nonce: string; readonly claimant: string; readonly expires: number } | undefined
  readonly unverified?: boolean | undefined
}

/** Null: nothing. The claimant is who may use the nonce again: a hash, since the table is no list of addresses. */
export function credentialsOf({
  email,
  proof,
  unverified,
}: Pick<Signup, 'email' | 'proof' | 'unverified'>): Credentials | null {
  if (proof === undefined) return unverified ? { unverified } : null
  const { nonce, expires } = proof
  const claimant = createHash('sha256')
    .update(`${nonce}\n${emailKey(email)}`)
    .digest('base64url')
  return { proof: { nonce, claimant, expires: expires.getTime() }, unverified }
}

/** Milliseconds for which a spent nonce is kept after it has expired: clocks of instances are a little apart. */
export const SPENT_AFTER = 60_000

/** Rows that a batch sweeps at most beyond as many as it has signups, so that the tables shrink while signups go on. */
export const SWEPT = 64
