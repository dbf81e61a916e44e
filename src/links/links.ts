import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import type { Addressee } from '../confirm/store.ts'
import { EMAIL_MAX } from '../signup/contact.ts'

/** What a link in a mail is good for, and the path that it has. */
export const purposes = ['confirm', 'unsubscribe'] as const
export type Purpose = (typeof purposes)[number]

/** The links in the mails to a contact. */
export type Links = Readonly<Record<Purpose, (contact: Addressee) => string>>

/** The name of the secret that seals them, which is the same for all who share a store, and in every copy of it. */
export const LINKS_SECRET = 'links'

/**
 * A token is sealed rather than signed alone (AES-256-GCM): the address in it finds the contact by an index, and stays out of the
 * logs of proxies. Its purpose is sealed with it, or a link to leave could be made one to confirm.
 */
const CIPHER = 'aes-256-gcm'

/** Bytes of each part of a token: the nonce, then sealed the expiry, the id and the address, then the tag. */
const NONCE = 12
const EXPIRY = 6
const ID = 16
const TAG = 16
const LONGEST = NONCE + EXPIRY + ID + EMAIL_MAX + TAG

/** The expiry of what does not expire. */
const NEVER = 2 ** (8 * EXPIRY) - 1

const keyOf = (secret: string): Buffer => Buffer.from(secret, 'hex')

/**
 * Makes links that nobody else can make. One that confirms is good for `within` milliseconds after it was made, one that
 * unsubscribes for as long as the contact is stored. `base`: the public origin, without a slash at the end. `secret`: 64
 * hexadecimal digits. `now`: milliseconds since 1970.
 */
export function linksOf(base: string, secret: string, within: number, now = Date.now): Links {
  const link = (purpose: Purpose, expiry: number, { id, email }: Addressee): string => {
    const said = Buffer.alloc(EXPIRY + ID + email.length)
    said.writeUIntBE(expiry, 0, EXPIRY)
    said.write(id.replaceAll('-', ''), EXPIRY, 'hex')
    said.write(email, EXPIRY + ID, 'latin1')
    // Made of what is sealed, so that no nonce is used for two texts, and a contact has one link to leave.
    const nonce = createHmac('sha256', secret).update(`${purpose}\n`).update(said).digest().subarray(0, NONCE)
    const cipher = createCipheriv(CIPHER, keyOf(secret), nonce).setAAD(Buffer.from(purpose))
    const sealed = [cipher.update(said), cipher.final(), cipher.getAuthTag()]
    return `${base}/${purpose}?token=${Buffer.concat([nonce, ...sealed]).toString('base64url')}`
  }
  return {
    confirm: contact => link('confirm', now() + within, contact),
    unsubscribe: contact => link('unsubscribe', NEVER, contact),
  }
}

/** What a token says. `contact`: whose it is, if nobody has erased it. */
export type Read =
  | { readonly is: 'good'; readonly contact: Addressee }
  | { readonly is: 'expired' }
  | { readonly is: 'invalid' }

/** Reads the token of a link. `now`: milliseconds since 1970. */
export function readToken(purpose: Purpose, token: string, secret: string, now: number): Read {
  const said = opened(purpose, Buffer.from(token, 'base64url'), token, secret)
  if (said === null) return { is: 'invalid' }
  if (said.readUIntBE(0, EXPIRY) <= now) return { is: 'expired' }
  return { is: 'good', contact: { id: idIn(said.subarray(EXPIRY)), email: said.toString('latin1', EXPIRY + ID) } }
}

/** Null: we did not seal it. */
function opened(purpose: Purpose, bytes: Buffer, token: string, secret: string): Buffer | null {
  // Node skips what is no base64url, and several texts stand for the same bytes.
  if (bytes.length <= NONCE + EXPIRY + ID + TAG || bytes.length > LONGEST) return null
  if (bytes.toString('base64url') !== token) return null
  const end = bytes.length - TAG
  const decipher = createDecipheriv(CIPHER, keyOf(secret), bytes.subarray(0, NONCE), { authTagLength: TAG })
  decipher.setAAD(Buffer.from(purpose)).setAuthTag(bytes.subarray(end))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE, end)), decipher.final()])
  } catch {
    return null
  }
}

/** RFC 9562 §4. */
const idIn = (said: Buffer): string =>
  said.toString('hex', 0, ID).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
