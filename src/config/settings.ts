import { trustedProxies } from '../http/client-address.ts'
import { httpUrl, isPrivate } from '../http-client/addresses.ts'
import { inviteLink, mailbox, smtpUrl } from '../mail/settings.ts'
import { vendorNames } from '../providers/list.ts'
import { providerFields } from '../providers/vendor.ts'
import { readStoreLocation } from '../store/open.ts'
import {
  address,
  countPerTime,
  duration,
  host,
  hostAndPort,
  line,
  listOf,
  oneOf,
  optional,
  origin,
  path,
  type SettingsTable,
  shaped,
  whole,
  withDefault,
  word,
  yesOrNo,
} from './readers.ts'

const storeLocation = {
  allowed:
    'must be sqlite:<path>, or postgres://<user>:<password>@<host>:<port>/<database>, with sslmode and the like if ' +
    'need be (docs/instances.md), and %-encoded where a part has special characters',
  read: readStoreLocation,
}

const origins = {
  allowed: 'must be a list of origins such as https://example.com,https://www.example.com',
  read: (text: string) => listOf(origin, text),
}

const webhookUrl = {
  allowed: 'must be an http or https address without user and fragment',
  read: (text: string) => httpUrl(text)?.href,
}

/** Whether a text is a Standard Webhooks secret: `whsec_` and 24 to 64 bytes in base64. */
export function isSecret(text: string): boolean {
  const [, encoded = ''] = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(text) ?? []
  const { length } = Buffer.from(encoded, 'base64')
  return length >= 24 && length <= 64
}

const webhookSecrets = {
  allowed: 'must be whsec_ and 24 to 64 bytes in base64; two of them at most, separated by a space',
  read(text: string): readonly string[] | undefined {
    const secrets = text.split(/\s+/)
    return secrets.length <= 2 && secrets.every(isSecret) ? secrets : undefined
  },
}

/** What chats show as the address of an incoming webhook. It is as secret as a password. */
const chatUrl = {
  allowed: 'must be an https address without user and fragment; http only for a private address',
  read(text: string): string | undefined {
    const url = httpUrl(text)
    return url?.protocol === 'https:' || (url && isPrivate(text)) ? url.href : undefined
  },
}

const mails = {
  allowed: 'must be none, or a list of welcome and invite',
  read: (text: string) => (text === 'none' ? [] : listOf(oneOf('welcome', 'invite'), text)),
}

const eventName = shaped(/^[\w.-]{1,100}$/, 'must be up to 100 letters, digits, dots, dashes and underscores')

/** What a client sends after `Bearer` (RFC 6750 §2.1), and nobody finds by trying. */
const token = shaped(
  /^(?=.{32,512}$)[\w.~+/-]+=*$/,
  'must be 32 to 512 letters, digits and -._~+/, with = only at the end',
)

/**
 * Every setting but the providers'. The configuration and `waitlist help serve` are made from this table, and so are
 * docs/settings.md and `.env.example` (`npm run generate`).
 */
export const settings = {
  BASE_URL: optional(
    origin,
    'Public origin of the service, for links, the OpenAPI document and the cookie; otherwise where it listens.',
  ),
  HOST: withDefault(host, 'localhost', 'Where to listen: a host name or an address; 0.0.0.0 for all.'),
  PORT: withDefault(whole(0, 65_535), '8080', 'TCP port; 0 takes any free one.'),
  TLS_CERT_FILE: optional(path, 'Certificate chain (PEM), to serve HTTPS without a proxy. Reloaded when it changes.'),
  TLS_KEY_FILE: optional(path, 'Private key (PEM) of the certificate.'),
  DATABASE_URL: withDefault(
    storeLocation,
    'sqlite:./data/waitlist.db',
    'Where the list is kept: a SQLite file, or a PostgreSQL database that several instances share.',
  ),
  RATE_LIMIT: withDefault(
    countPerTime(1, '10m'),
    '20/10m',
    'Signup attempts that one client may make at once, and the time in which a used-up quota is refilled, evenly.',
  ),
  TRUST_PROXY: optional(
    trustedProxies,
    'Proxies in front that may say who the client is (X-Forwarded-For). Nobody is trusted otherwise.',
  ),
  CORS_ORIGINS: optional(origins, 'Landing pages on other origins that may send signups, separated by commas.'),
  CHALLENGE: withDefault(
    oneOf('none', 'altcha', 'turnstile', 'hcaptcha', 'cap'),
    'none',
    "What a visitor's browser must solve before a signup is taken (docs/bots.md).",
  ),
  CHALLENGE_SECRET: optional(word, 'Secret of the vendor; for altcha a key of your own, or else one is made.'),
  CHALLENGE_SITE_KEY: optional(
    word,
    "Site key of the vendor's widget, for form.js; for cap its address, if pages do not use CHALLENGE_URL.",
  ),
  CHALLENGE_URL: optional(address, "Address of the verifier, where it is not the vendor's own; cap needs it."),
  HOLD_ABOVE: optional(
    countPerTime(0, '1h'),
    'New contacts that are let in within a time, such as 200/1h; those beyond it are held until you release them.',
  ),
  HOLD_SUSPICIOUS: withDefault(yesOrNo, 'false', 'Whether signups that look like a bot are held (docs/bots.md).'),
  BLOCKED_DOMAINS_FILE: optional(path, 'File with email domains to refuse, one a line. Reloaded on SIGHUP.'),
  DISCLOSE_MEMBERSHIP: withDefault(yesOrNo, 'true', 'Whether an answer says if the address was on the list before.'),
  PROVIDER: withDefault(
    oneOf('none', ...vendorNames),
    'none',
    'Email tool that holds the list too; its own settings are in docs/providers.md.',
  ),
  PROVIDER_FIELDS: optional(providerFields, 'Fields to set on a new contact: name=value, separated by commas.'),
  WEBHOOK_URL: optional(webhookUrl, 'URL that receives an event for each new contact (docs/events.md).'),
  WEBHOOK_SECRET: optional(
    webhookSecrets,
    'Secret that signs what is sent there (whsec_…); two, separated by a space, while it is changed.',
  ),
  SLACK_WEBHOOK_URL: optional(chatUrl, 'Incoming webhook of a Slack channel that hears how many joined.'),
  DISCORD_WEBHOOK_URL: optional(chatUrl, 'The same for a Discord channel.'),
  SMTP_URL: optional(
    smtpUrl,
    'Mail server for mails to new contacts, to those you invite, and to you (docs/events.md).',
  ),
  MAIL_FROM: optional(mailbox, 'Sender of the mails: an address, or Name <address>.'),
  MAILS: withDefault(mails, 'welcome,invite', 'The mails that contacts are sent: welcome, invite, or both; or none.'),
  MAIL_TEMPLATES: optional(
    path,
    'Folder with your own welcome.txt, invite.txt and confirm.txt, each with .html beside it; otherwise ours are sent.',
  ),
  INVITE_LINK: optional(inviteLink, 'Address of your app at which an invitation is taken, with {code} in it.'),
  CONFIRM: withDefault(
    oneOf('none', 'mail'),
    'none',
    'Whether a new contact must confirm its address first: mail sends it a link (docs/confirming.md).',
  ),
  MAIL_RATE: withDefault(whole(6, 6_000), '60', 'The most mails that one instance sends in a minute, evenly spread.'),
  OWNER_MAIL: optional(mailbox, 'Your own address, which is mailed how many joined, and what is wrong.'),
  EVENT_NAME: withDefault(eventName, 'waitlist.joined', 'Name of the automation event of a new contact.'),
  INVITED_EVENT_NAME: withDefault(eventName, 'waitlist.invited', 'Name of the event of a contact that is invited.'),
  MESSAGES_FILE: optional(path, 'JSON file with what visitors read, in their languages (docs/api.md).'),
  SERVICE_NAME: withDefault(line(100), 'waitlist', 'Name in the health report, the documentation, mails and chats.'),
  SERVICE_DESCRIPTION: withDefault(line(500), 'Early-access waitlist', 'One sentence, shown beside the name.'),
  SHUTDOWN_DELAY: withDefault(
    duration('0ms', '2s'),
    '1s',
    'Time between the first 503 of the health report and the end of listening when stopped.',
  ),
  TRACK_SOURCES: withDefault(yesOrNo, 'false', 'Whether utm_… and ref in the query of a signup are kept.'),
  ADMIN_LISTEN: optional(
    hostAndPort,
    'Second listener, with a page for the launch day and metrics, such as localhost:9090. Anybody who can reach it sees counts.',
  ),
  ADMIN_TOKEN: optional(
    token,
    'What your app sends there to ask for an invitation (docs/inviting.md); without it, only this machine may ask.',
  ),
  LOG_LEVEL: withDefault(
    oneOf('fatal', 'error', 'warn', 'info', 'debug', 'silent'),
    'info',
    'The minimum severity of the log lines; debug has one for each request.',
  ),
} satisfies SettingsTable

export type SettingName = keyof typeof settings
