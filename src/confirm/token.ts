import { createHmac, timingSafeEqual } from 'node:crypto'
import { paths } from '../http/paths.ts'
import type { Addressee } from './store.ts'

/** What a link in a mail is good for. */
export const purposes = ['confirm', 'unsubscribe'] as const
export type Purpose = (typeof purposes)[number]

/** The links in the mails to a contact. */
export type Links = Readonly<Record<Purpose, (contact: Addressee) => string>>

/** The name of the secret that signs them: the same for all who share a store, and in every copy of it. */
export const LINKS_SECRET = 'links'

/** Milliseconds for which a link confirms: 7 days. An unconfirmed contact is deleted as long after its last mail. */
export const CONFIRM_WITHIN = 604_800_000

/** A link to leave never expires. */
const NEVER = 2 ** 48 - 1

/** Bytes: the contact's id, when it signed up, when the token expires; then the first 16 of the HMAC. */
const ID = 16
const TIME = 6
const SIGNED = ID + 2 * TIME
const MAC = 16

/** `base`: the public origin, without a slash at the end. `secret`: 64 hexadecimal digits. `now`: milliseconds since 1970. */
export function linksOf(base: string, secret: string, now = Date.now): Links {
  const link = (purpose: Purpose, { id, createdAt }: Addressee, expiresAt: number) => {
    const signed = Buffer.alloc(SIGNED)
    signed.write(id.replaceAll('-', ''), 'hex')
    signed.writeIntBE(createdAt.getTime(), ID, TIME)
    signed.writeUIntBE(expiresAt, ID + TIME, TIME)
    const token = Buffer.concat([signed, macOf(purpose, signed, secret)]).toString('base64url')
    return `${base}${paths[purpose]}?token=${token}`
  }
  return {
    confirm: contact => link('confirm', contact, now() + CONFIRM_WITHIN),
    unsubscribe: contact => link('unsubscribe', contact, NEVER),
  }
}

/** The contact that a token was made for, and whether the token has expired at `now`; null: we did not make it. */
export function readToken(purpose: Purpose, token: string, secret: string, now: number) {
  const bytes = Buffer.from(token, 'base64url')
  // Node skips what is not base64url, and several texts stand for the same bytes.
  if (bytes.length !== SIGNED + MAC || bytes.toString('base64url') !== token) return null
  const signed = bytes.subarray(0, SIGNED)
  if (!timingSafeEqual(bytes.subarray(SIGNED), macOf(purpose, signed, secret))) return null
  const id = signed.toString('hex', 0, ID).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  const contact: Addressee = { id, createdAt: new Date(signed.readIntBE(ID, TIME)) }
  return { contact, hasExpired: signed.readUIntBE(ID + TIME, TIME) <= now }
}

const macOf = (purpose: Purpose, signed: Buffer, secret: string): Buffer =>
  createHmac('sha256', Buffer.from(secret, 'hex')).update(`${purpose}\n`).update(signed).digest().subarray(0, MAC)
