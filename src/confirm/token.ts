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
const NEVER = Number.MAX_SAFE_INTEGER

/** The contact's id, when it signed up, when the token expires; then the beginning of the HMAC. */
const TOKEN = /^(([\da-f-]{36})\.(\d+)\.(\d+))\.([\w-]{22})$/

/** `base`: the public origin, without a slash at the end. `secret`: 64 hexadecimal digits. `now`: milliseconds since 1970. */
export function linksOf(base: string, secret: string, now = Date.now): Links {
  const link = (purpose: Purpose, { id, createdAt }: Addressee, expiresAt: number) => {
    const signed = `${id}.${createdAt.getTime()}.${expiresAt}`
    return `${base}${paths[purpose]}?token=${signed}.${macOf(purpose, signed, secret)}`
  }
  return {
    confirm: contact => link('confirm', contact, now() + CONFIRM_WITHIN),
    unsubscribe: contact => link('unsubscribe', contact, NEVER),
  }
}

/** The contact that a token was made for, and whether the token has expired at `now`; null: we did not make it. */
export function readToken(purpose: Purpose, token: string, secret: string, now: number) {
  const [, signed, id, createdAt, expiresAt, mac] = TOKEN.exec(token) ?? []
  if (signed === undefined) return null
  if (!timingSafeEqual(Buffer.from(mac!), Buffer.from(macOf(purpose, signed, secret)))) return null
  const contact: Addressee = { id: id!, createdAt: new Date(Number(createdAt)) }
  return { contact, hasExpired: Number(expiresAt) <= now }
}

const macOf = (purpose: Purpose, signed: string, secret: string): string =>
  createHmac('sha256', Buffer.from(secret, 'hex')).update(`${purpose} ${signed}`).digest('base64url').slice(0, 22)
