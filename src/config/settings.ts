import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { TrustedProxies } from '../http/client-address.ts'
import { httpUrl, isPrivate } from '../http-client/addresses.ts'
import { inviteLink, mailbox, smtpUrl } from '../mail/settings.ts'
import { isSecret } from '../notify/webhook.ts'
import { vendorNames } from '../providers/list.ts'
import { readStoreLocation } from '../store/location.ts'
import {
  address,
  assignments,
  countPerTime,
  duration,
  file,
  folder,
  host,
  hostAndPort,
  line,
  listOf,
  oneOf,
  origin,
  type SettingsTable,
  whole,
  word,
  yesOrNo,
} from './kinds.ts'

/** `10/8` and octal parts do not mean what they seem to; IPv4-mapped peers are compared as IPv4. */
const isNetwork = (text: string): boolean =>
  ipaddr.isValidCIDR(text) && isIP(text.split('/')[0]!) !== 0 && !/^::ffff:/i.test(text) && !/\/0\d/.test(text)

function readProxies(text: string): TrustedProxies | undefined {
  if (/^\d{1,2}$/.test(text)) return text === '0' ? { kind: 'none' } : { kind: 'hops', hops: Number(text) }
  const networks = listOf({ read: item => (isNetwork(item) ? item : undefined) }, text)
  return networks && { kind: 'networks', networks }
}

function readSecrets(text: string): readonly string[] | undefined {
  const secrets = text.split(/\s+/)
  return secrets.length <= 2 && secrets.every(isSecret) ? secrets : undefined
}

/** What chats show as the address of an incoming webhook. It is as secret as a password. */
const chatUrl = {
  allowed: 'must be an https address without user and fragment; http only for a private address',
  read(text: string): string | undefined {
    const url = httpUrl(text)
    return url?.protocol === 'https:' || (url && isPrivate(text)) ? url.href : undefined
  },
}

const eventName = {
  allowed: 'must be up to 100 letters, digits, dots, dashes and underscores',
  read: (text: string): string | undefined => (/^[\w.-]{1,100}$/.test(text) ? text : undefined),
}

/** What a client sends after `Bearer` (RFC 6750 §2.1), and nobody finds by trying. */
const token = {
  allowed: 'must be 32 to 512 letters, digits and -._~+/, with = only at the end',
  read: (text: string): string | undefined =>
    /^[\w.~+/-]+=*$/.test(text) && text.length >= 32 && text.length <= 512 ? text : undefined,
}

/**
 * Every setting except the providers'. The configuration and `waitlist --help` come from this table; a test compares
 * docs/settings.md and `.env.example` with it.
 */
export const settings = {
  BASE_URL: {
    meaning: 'Public origin of the service. Links, the catalog, the OpenAPI document and the cookie are made from it.',
    unset: 'http://localhost:<PORT> (https with TLS)',
    ...origin,
  },
  HOST: { meaning: 'Where to listen: a host name or an address; 0.0.0.0 for all.', default: 'localhost', ...host },
  PORT: { meaning: 'TCP port; 0 takes any free one.', default: '8080', ...whole(0, 65_535) },
  TLS_CERT_FILE: {
    meaning: 'Certificate chain (PEM). With TLS_KEY_FILE the service speaks HTTPS itself. Reloaded when it changes.',
    ...file,
  },
  TLS_KEY_FILE: { meaning: 'Private key (PEM) of the certificate.', ...file },
  DATABASE_URL: {
    meaning: 'Where the list is kept: a SQLite file, or a PostgreSQL database that several instances share.',
    default: 'sqlite:./data/waitlist.db',
    allowed:
      'must be sqlite:<path>, or postgres://<user>:<password>@<host>:<port>/<database>, with sslmode and the like if ' +
      'need be (docs/instances.md), and %-encoded where a part has special characters',
    read: readStoreLocation,
  },
  RATE_LIMIT: {
    meaning:
      'Signup attempts that one client may make at once, and the time in which a used-up quota is refilled, evenly.',
    default: '20/10m',
    ...countPerTime(1, 1_000_000, '10m'),
  },
  TRUST_PROXY: {
    meaning: 'Proxies in front that may say who the client is (X-Forwarded-For). Nobody is trusted otherwise.',
    allowed: 'must be a number of proxies (0 to 99) or a list of networks such as 10.0.0.0/8,fd00::/8',
    read: readProxies,
  },
  CORS_ORIGINS: {
    meaning: 'Landing pages on other origins that may send signups, separated by commas.',
    allowed: 'must be a list of origins such as https://example.com,https://www.example.com',
    read: (text: string) => listOf(origin, text),
  },
  CHALLENGE: {
    meaning: "What a visitor's browser must solve before a signup is taken (docs/bots.md).",
    default: 'none',
    ...oneOf('none', 'altcha', 'turnstile', 'hcaptcha', 'cap'),
  },
  CHALLENGE_SECRET: {
    meaning: 'Secret of the vendor; for altcha a key of your own, or else one is made and kept in the database.',
    ...word,
  },
  CHALLENGE_SITE_KEY: {
    meaning: "Site key of the vendor's widget, for form.js; for cap its address, if pages do not use CHALLENGE_URL.",
    ...word,
  },
  CHALLENGE_URL: {
    meaning: "Address of the verifier, where it is not the vendor's own; cap needs it.",
    ...address,
  },
  HOLD_ABOVE: {
    meaning:
      'New contacts that are let in within a time, such as 200/1h; those beyond it are held until you release them.',
    ...countPerTime(0, 1_000_000, '1h'),
  },
  HOLD_SUSPICIOUS: {
    meaning: 'Whether signups that look like those of a bot are held (docs/bots.md).',
    default: 'false',
    ...yesOrNo,
  },
  BLOCKED_DOMAINS_FILE: {
    meaning: 'File with email domains that are not accepted, one a line. Reloaded on SIGHUP.',
    ...file,
  },
  DISCLOSE_MEMBERSHIP: {
    meaning: 'Whether an answer says if the address was on the list before.',
    default: 'true',
    ...yesOrNo,
  },
  PROVIDER: {
    meaning: 'Email tool that holds the list too; its own settings are in docs/providers.md.',
    default: 'none',
    ...oneOf('none', ...vendorNames),
  },
  PROVIDER_FIELDS: {
    meaning: 'Fields of your own to set on a new contact: name=value, separated by commas.',
    ...assignments,
  },
  WEBHOOK_URL: {
    meaning: 'Address that is told of every new contact (Standard Webhooks, docs/events.md).',
    allowed: 'must be an http or https address without user and fragment',
    read: (text: string) => httpUrl(text)?.href,
  },
  WEBHOOK_SECRET: {
    meaning: 'Secret that signs what is sent there (whsec_…); two, separated by a space, while it is changed.',
    allowed: 'must be whsec_ and 24 to 64 bytes in base64; two of them at most, separated by a space',
    read: readSecrets,
  },
  SLACK_WEBHOOK_URL: {
    meaning: 'Incoming webhook of a Slack channel that is told how many joined (docs/events.md).',
    ...chatUrl,
  },
  DISCORD_WEBHOOK_URL: { meaning: 'The same for a Discord channel.', ...chatUrl },
  SMTP_URL: {
    meaning:
      'Mail server through which mails are sent: to new contacts, to those whom you invite, and to you (docs/events.md).',
    ...smtpUrl,
  },
  MAIL_FROM: {
    meaning: 'Sender of the mails: an address, or Name <address>.',
    ...mailbox,
  },
  MAILS: {
    meaning: 'The mails that contacts are sent: welcome, invite, or both; none for neither (docs/events.md).',
    default: 'welcome,invite',
    allowed: 'must be none, or a list of welcome and invite',
    read: (text: string) => (text === 'none' ? [] : listOf(oneOf('welcome', 'invite'), text)),
  },
  MAIL_TEMPLATES: {
    meaning: 'Folder with your own letters: welcome.txt, invite.txt and confirm.txt, each with .html beside it.',
    unset: 'short letters of ours',
    ...folder,
  },
  INVITE_LINK: {
    meaning: 'Address of your app at which an invitation is taken, with {code} in it.',
    ...inviteLink,
  },
  CONFIRM: {
    meaning: 'Whether a new contact must confirm its address first: mail sends it a link (docs/confirming.md).',
    default: 'none',
    ...oneOf('none', 'mail'),
  },
  MAIL_RATE: {
    meaning: 'The most mails that one instance sends in a minute, evenly spread.',
    default: '60',
    ...whole(6, 6_000),
  },
  OWNER_MAIL: {
    meaning: 'Your own address, which is mailed how many joined, and what is wrong (docs/events.md).',
    ...mailbox,
  },
  EVENT_NAME: {
    meaning: 'Name of the automation event of a new contact.',
    default: 'waitlist.joined',
    ...eventName,
  },
  INVITED_EVENT_NAME: {
    meaning: 'Name of the event of a contact that is invited (docs/inviting.md).',
    default: 'waitlist.invited',
    ...eventName,
  },
  MESSAGES_FILE: {
    meaning: 'JSON file with what visitors are told, in their languages (docs/api.md).',
    ...file,
  },
  SERVICE_NAME: {
    meaning: 'Name in the health report, the self-description, the documentation, mails and chats.',
    default: 'waitlist',
    ...line(100),
  },
  SERVICE_DESCRIPTION: {
    meaning: 'One sentence about the service, shown beside its name.',
    default: 'Early-access waitlist',
    ...line(500),
  },
  SHUTDOWN_DELAY: {
    meaning: 'Time between the first 503 of the health report and the end of listening when stopped.',
    default: '1s',
    ...duration('0ms', '2s'),
  },
  TRACK_SOURCES: {
    meaning:
      'Whether utm_source, utm_medium, utm_campaign, utm_term, utm_content and ref in the query of a signup are kept.',
    default: 'false',
    ...yesOrNo,
  },
  ADMIN_LISTEN: {
    meaning:
      'Host and port of a second listener with a page for the launch day and metrics, such as localhost:9090. Everybody who can reach it sees the counts.',
    ...hostAndPort,
  },
  ADMIN_TOKEN: {
    meaning:
      'What your app sends there to ask for an invitation (docs/inviting.md); without it, only this machine may ask.',
    ...token,
  },
  LOG_LEVEL: {
    meaning: 'The minimum severity of the log lines that are written; debug has one for each request.',
    default: 'info',
    ...oneOf('fatal', 'error', 'warn', 'info', 'debug', 'silent'),
  },
} satisfies SettingsTable

export type SettingName = keyof typeof settings

/** The settings of each provider. */
export { allVendors, vendorNames } from '../providers/list.ts'
export type { SettingsTable } from './kinds.ts'
