/** Values that are refused, and look as if something else was meant. */

interface Look {
  readonly shape: RegExp
  /** The rest of the sentence. */
  readonly clue: string
  /** The settings that it is told of; otherwise all. */
  readonly of?: RegExp
  /** The setting whose values look like that. */
  readonly home?: string
}

const belongs = (shape: RegExp, what: string, home: string, of?: RegExp): Look => ({
  shape,
  clue: `it looks like ${what}, which belongs in ${home}`,
  home,
  ...(of && { of }),
})

const NAME = /^(?:localhost|(?=.*[a-z])[a-z\d-]+(?:\.[a-z\d-]+)+)(?::\d+)?(?:[/?]|$)/i
const ADDRESS = /^(?:\d+\.\d+\.\d+\.\d+(?::\d+)?|\[?[\da-f]*:[\da-f:.]*\]?(?::\d+)?)$/i

const looks: readonly Look[] = [
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
  { shape: /^(?:tcp|udp):\/\//, clue: 'Kubernetes and Docker set it for a neighbour of that name, so set it yourself' },
  belongs(/^\d+$/, 'a port', 'PORT', /^HOST$/),
  belongs(/^\d+$/, 'a port', 'ADMIN_PORT', /^ADMIN_HOST$/),
  ...[NAME, ADDRESS].flatMap(shape => [
    belongs(shape, 'a host', 'HOST', /^PORT$/),
    belongs(shape, 'a host', 'ADMIN_HOST', /^ADMIN_PORT$/),
  ]),
  { shape: NAME, clue: 'its https:// is missing', of: /^(?:(?!SMTP|REDIS|DATABASE)\w+_URL|CORS_ORIGINS)$/ },
  { shape: /^-----BEGIN /, clue: 'it looks like what is in the file', of: /_FILE$/ },
  { shape: /^(?:true|yes|on)$/i, clue: 'for a single proxy set 1', of: /^TRUST_PROXY$/ },
  { shape: /^\*$/, clue: 'name each one that may send signups', of: /^CORS_ORIGINS$/ },
]

/** What ends a sentence that refuses this value, and never repeats it; empty if there is no telling. */
export function misplaced(name: string, text: string): string {
  const look = looks.find(({ shape, of }) => (of?.test(name) ?? true) && shape.test(text))
  return look === undefined || look.home === name ? '' : `; ${look.clue}`
}
