import type { EventKind } from '../signup/contact.ts'
import { EMAIL_PATTERN } from '../signup/contact.ts'
import { isLink, listed, placeholders, unknownPlaceholder } from './placeholders.ts'

/** A mail server that takes mail from us (RFC 6409). */
export interface SmtpLocation {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
  /** TLS from the first byte (RFC 8314 §3.3). Otherwise by STARTTLS (RFC 3207). */
  readonly secure: boolean
  readonly login: { readonly user: string; readonly password: string } | null
}

export interface Mailbox {
  /** May be empty. */
  readonly name: string
  readonly address: string
}

export interface MailSettings {
  readonly server: SmtpLocation
  readonly from: Mailbox
  /** The events that their contacts are told of. */
  readonly tells: readonly EventKind[]
  /** What each event is told with. */
  readonly letters: Readonly<Record<EventKind, Letter>>
  /** The address at which an invitation is taken, with `{code}` in it; null: mails have the code alone. */
  readonly inviteLink: string | null
  /** Mails a minute at most. */
  readonly rate: number
  readonly service: string
  /** What we call ourselves to the server (RFC 5321 §4.1.1.1). */
  readonly heloName: string
}

export interface Letter {
  readonly subject: string
  /** Paths of files; null: the text of our own, and no HTML. */
  readonly textFile: string | null
  readonly htmlFile: string | null
}

/**
 * The host of our public address, else the domain of the sender: many servers turn away a name that is none on the
 * internet, such as that of a container.
 */
export function heloNameOf(baseUrl: string | null, { address }: Mailbox): string {
  const host = baseUrl === null ? '' : new URL(baseUrl).hostname
  return /\.[a-z][a-z0-9-]*$/.test(host) ? host : address.slice(address.indexOf('@') + 1)
}

export const smtpUrlAllowed =
  'must be smtp://<user>:<password>@<host>:<port> or smtps://…, %-encoded where a part has special characters; without ' +
  'a user nobody logs in, without a port it is 587 or 465'

/** Host names as DNS has them (RFC 1123 §2.1), IPv4, and IPv6 in brackets. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252}[a-z0-9.])?|\[[0-9a-f:.]+\])$/

export function readSmtpUrl(text: string): SmtpLocation | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const secure = url.protocol === 'smtps:'
  if ((!secure && url.protocol !== 'smtp:') || !/^\/?$/.test(url.pathname) || url.search || url.hash) return undefined
  const user = decoded(url.username)
  const password = decoded(url.password)
  if (user === undefined || password === undefined || (user === '') !== (password === '')) return undefined
  const host = url.hostname.toLowerCase()
  const port = url.port === '' ? (secure ? 465 : 587) : Number(url.port)
  if (!HOST.test(host) || port === 0) return undefined
  return { host: host.replace(/^\[|\]$/g, ''), port, secure, login: user === '' ? null : { user, password } }
}

/** RFC 4616 §2: neither part may have a NUL; other controls are typing errors. */
function decoded(part: string): string | undefined {
  try {
    const text = decodeURIComponent(part)
    return /\p{Cc}/u.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

export const mailboxAllowed = 'must be an address such as hello@example.com, or Name <hello@example.com>'

const mailbox = new RegExp(
  `^(?:(?<address>${EMAIL_PATTERN})|(?<name>[^<>]{1,100}?) ?<(?<inBrackets>${EMAIL_PATTERN})>)$`,
)

export function readMailbox(text: string): Mailbox | undefined {
  const { address, name = '', inBrackets } = mailbox.exec(text)?.groups ?? {}
  const found = address ?? inBrackets
  if (found === undefined || found.length > 254 || /\p{Cc}/u.test(name)) return undefined
  // Quotes are how such a text is often written (RFC 5322 §3.2.4), and no part of the name.
  return { name: name.replace(/^"(.*)"$/, '$1'), address: found }
}

/** How the subject of a letter is read. */
export function subjectOf(event: EventKind) {
  const known = placeholders[event].filter(name => !isLink(name))
  return {
    allowed: `must be one line of at most 200 characters, with no placeholders but ${listed(known)}`,
    read: (text: string): string | undefined =>
      text.length <= 200 && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) && unknownPlaceholder(text, known) === undefined
        ? text
        : undefined,
  }
}

/** No user, and no code in the host. */
const LINK = /^https?:\/\/[^/?#@{}\s]+[/?#][^\s{}]*\{code\}[^\s{}]*$/i

export const inviteLink = {
  allowed:
    'must be an http or https address with {code} in it once, such as https://app.example.com/invited?code={code}',
  read: (text: string): string | undefined => (LINK.test(text) && URL.canParse(text) ? text : undefined),
}
