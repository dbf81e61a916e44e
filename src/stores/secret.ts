import { randomBytes } from 'node:crypto'

/** A value for `secret`: 32 random bytes in hex. */
export const newSecret = (): string => randomBytes(32).toString('hex')
