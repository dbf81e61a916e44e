/** Values that are refused, and look as if something else was meant. */

interface Hint {
  readonly pattern: RegExp
  /** The rest of the sentence. */
  readonly sentence: string
  /** The settings that it is told of; otherwise all. */
  readonly of?: RegExp
  /** The setting whose values look like that. */
  readonly belongsIn?: string
}

const belongs = (pattern: RegExp, what: string, belongsIn: string, of?: RegExp): Hint => ({
  pattern,
  sentence: `it looks like ${what}, which belongs in ${belongsIn}`,
  belongsIn,
  ...(of && { of }),
})

const NAME = /^(?:localhost|(?=.*[a-z])[a-z\d-]+(?:\.[a-z\d-]+)+)(?::\d+)?(?:[/?]|$)/i
const ADDRESS = /^(?:\d+\.\d+\.\d+\.\d+(?::\d+)?|\[?[\da-f]*:[\da-f:.]*\]?(?::\d+)?)$/i

const hints: readonly Hint[] = [
  belongs(/^postgres(?:ql)?:\/\//i, 'an address of PostgreSQL', 'DATABASE_URL'),
  belongs(/^sqlite:/i, 'a SQLite file', 'DATABASE_URL'),
  belongs(/^rediss?:\/\//i, 'an address of Redis', 'REDIS_URL'),
  belongs(/^smtps?:\/\//i, 'an address of a mail server', 'SMTP_URL'),
  belongs(/^whsec_/, 'a secret', 'WEBHOOK_SECRET'),
  belongs(/^https?:\/\/hooks\.slack(?:-gov)?\.com\//i, 'a webhook of Slack', 'SLACK_WEBHOOK_URL'),
  belongs(
    /^https?:\/\/(?:\w+\.)?discord(?:app)?\.com\/api\/webhooks\//i,
    'a webhook of Discord',
    'DISCORD_WEBHOOK_URL',
  ),
  belongs(/^https?:\/\//i, 'the address of a receiver', 'WEBHOOK_URL', /^WEBHOOK_SECRET$/),
  belongs(/^https?:\/\//i, 'the public address', 'BASE_URL', /^(?:HOST|PORT)$/),
  {
    pattern: /^(?:tcp|udp):\/\//,
    sentence: 'Kubernetes and Docker set it for a neighbour of that name, so set it yourself',
  },
  belongs(/^\d+$/, 'a port', 'PORT', /^HOST$/),
  belongs(/^\d+$/, 'a port', 'ADMIN_PORT', /^ADMIN_HOST$/),
  ...[NAME, ADDRESS].flatMap(pattern => [
    belongs(pattern, 'a host', 'HOST', /^PORT$/),
    belongs(pattern, 'a host', 'ADMIN_HOST', /^ADMIN_PORT$/),
  ]),
  { pattern: NAME, sentence: 'its https:// is missing', of: /^(?:(?!SMTP|REDIS|DATABASE)\w+_URL|CORS_ORIGINS)$/ },
  { pattern: /^-----BEGIN /, sentence: 'it looks like what is in the file', of: /_FILE$/ },
  { pattern: /^(?:true|yes|on)$/i, sentence: 'for a single proxy set 1', of: /^TRUST_PROXY$/ },
  { pattern: /^\*$/, sentence: 'name each one that may send signups', of: /^CORS_ORIGINS$/ },
]

/** What ends a sentence that refuses this value, and never repeats it; empty if there is no telling. */
export function misplaced(name: string, text: string): string {
  const hint = hints.find(({ pattern, of }) => (of?.test(name) ?? true) && pattern.test(text))
  return hint === undefined || hint.belongsIn === name ? '' : `; ${hint.sentence}`
}
