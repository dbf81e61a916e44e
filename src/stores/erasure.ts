import { createHmac } from 'node:crypto'
import { emailKey } from '../waitlist/rules/signup.ts'

/** The name of the secret under which erased addresses are hashed. It is made at the first removal. */
export const ERASURE = 'erasure'

/**
 * What is kept of an erased address, so that older copies of the contact do not come back: HMAC-SHA-256 in hex. Who has
 * neither the secret nor the address learns nothing from it.
 */
export const erasureHash = (secret: string, email: string): string =>
  createHmac('sha256', secret).update(emailKey(email)).digest('hex')
