import { EMAIL_PATTERN, type EventKind } from '../signup/contact.ts'

/** A mail server that accepts submissions (RFC 6409). */
interface SmtpLocation {
  /** A name, or an address without brackets. */
  readonly host: string
  readonly port: number
  /** TLS from the first byte (RFC 8314 §3.3); otherwise STARTTLS (RFC 3207). */
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
  /** The mails that contacts are sent. */
  readonly letters: readonly EventKind[]
  /** A folder with the operator's own letters; null: ours. */
  readonly templates: string | null
  /** The address at which an invitation is redeemed, with `{code}` in it; null: mails have the code alone. */
  readonly inviteLink: string | null
  /** Mails a minute at most. */
  readonly rate: number
  readonly service: string
  /** The name that we greet the server with (RFC 5321 §4.1.1.1). */
  readonly heloName: string
}

/** Many servers reject a client whose name is not a public one, such as a container's. */
export function heloNameOf(baseUrl: string | null, { address }: Mailbox): string {
  const host = baseUrl === null ? '' : new URL(baseUrl).hostname
  return /\.[a-z][a-z0-9-]*$/.test(host) ? host : address.slice(address.indexOf('@') + 1)
}

/** Host names (RFC 1123 §2.1), IPv4, and IPv6 in brackets. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252}[a-z0-9.])?|\[[0-9a-f:.]+\])$/

export const smtpUrl = {
  allowed:
    'must be smtp://<user>:<password>@<host>:<port> or smtps://…, %-encoded where a part has special characters; without ' +
    'a user nobody logs in, without a port it is 587 or 465',
  read(text: string): SmtpLocation | undefined {
    if (!URL.canParse(text)) return undefined
    const url = new URL(text)
    const secure = url.protocol === 'smtps:'
    if ((!secure && url.protocol !== 'smtp:') || !/^\/?$/.test(url.pathname) || url.search || url.hash) return undefined
    const [user, password] = [url.username, url.password].map(decoded)
    if (user === undefined || password === undefined || (user === '') !== (password === '')) return undefined
    const host = url.hostname.toLowerCase()
    const port = url.port === '' ? (secure ? 465 : 587) : Number(url.port)
    if (!HOST.test(host) || port === 0) return undefined
    return { host: host.replace(/^\[|\]$/g, ''), port, secure, login: user === '' ? null : { user, password } }
  },
}

/** Undefined: it has control characters, or is not percent-encoded as it should be. */
function decoded(part: string): string | undefined {
  try {
    const text = decodeURIComponent(part)
    return /\p{Cc}/u.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

const MAILBOX = new RegExp(`^(?:(?<bare>${EMAIL_PATTERN})|(?<name>[^<>]{1,100}?) ?<(?<inBrackets>${EMAIL_PATTERN})>)$`)

export const mailbox = {
  allowed: 'must be an address such as hello@example.com, or Name <hello@example.com>',
  read(text: string): Mailbox | undefined {
    const { bare, name = '', inBrackets } = MAILBOX.exec(text)?.groups ?? {}
    const address = bare ?? inBrackets
    if (address === undefined || address.length > 254 || /\p{Cc}/u.test(name)) return undefined
    // People often quote the name (RFC 5322 §3.2.4).
    return { name: name.replace(/^"(.*)"$/, '$1'), address }
  },
}

/** No user, and no code in the host. */
const LINK = /^https?:\/\/[^/?#@{}\s]+[/?#][^\s{}]*\{code\}[^\s{}]*$/i

export const inviteLink = {
  allowed:
    'must be an http or https address with {code} in it once, such as https://app.example.com/invited?code={code}',
  read: (text: string): string | undefined => (LINK.test(text) && URL.canParse(text) ? text : undefined),
}
