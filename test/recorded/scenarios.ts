/** Settings of the service, and what is asked of it then. */

export interface Scenario {
  readonly settings: Readonly<Record<string, string>>
  readonly requests: readonly Request[]
  /** How the email tool behaves, which is Loops at LOOPS_BASE_URL; it listens only then. */
  readonly vendor?: 'answers' | 'refuses the key' | 'fails' | 'hangs up' | 'is slow' | 'limits'
  /** Files in the working directory. */
  readonly files?: Readonly<Record<string, string>>
  readonly isTls?: boolean
}

/** Its bytes. `{etag}` is that of the last answer from the same path, `{solution}` solves the last challenge. */
export interface Request {
  readonly what: string
  readonly bytes: string
}

const ask = (line: string, fields: readonly string[] = [], body?: string): Request => {
  const hasLength = body === undefined || fields.some(field => /^(content-length|transfer-encoding):/i.test(field))
  const all = ['Host: localhost', ...fields, ...(hasLength ? [] : [`Content-Length: ${Buffer.byteLength(body)}`])]
  // Each has a connection of its own, which is closed by whoever wants to.
  const what = [line, ...fields, ...(body === undefined ? [] : [body.slice(0, 120)])].join(' | ')
  return { what, bytes: `${line} HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n${body ?? ''}` }
}
const raw = (bytes: string): Request => ({ what: bytes.slice(0, 120), bytes })

const JSON_TYPE = 'Content-Type: application/json'
const post = (body: string, ...fields: string[]) => ask('POST /api/waitlist', [JSON_TYPE, ...fields], body)
const join = (email: string, ...fields: string[]) => post(JSON.stringify({ name: 'Ada Lovelace', email }), ...fields)

const resources = ['/api/waitlist', '/api/health', '/.well-known/api-catalog', '/api/openapi.json', '/docs/api']
const PREFLIGHT = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: content-type']
const LANDING = 'Origin: https://landing.example'
const STRANGER = 'Origin: https://stranger.example'

/** What most settings may change: the documents, a new contact, a known one, a refusal, what pages may do. */
const brief = [
  ...resources.map(path => ask(`GET ${path}`)),
  ask('GET /docs/api', ['Accept: text/markdown']),
  join('ada@example.com'),
  join('ada@example.com'),
  join(' Ada@EXAMPLE.com ', LANDING),
  join('not an address'),
  join('grace@example.com', LANDING),
  ask('GET /nowhere'),
  ask('DELETE /api/waitlist'),
  ask('OPTIONS /api/waitlist', [LANDING, ...PREFLIGHT]),
]

const fully = [
  ...brief,
  ...resources.flatMap(path => [
    ask(`HEAD ${path}`),
    ask(`OPTIONS ${path}`),
    ask(`DELETE ${path}`),
    ask(`PATCH ${path}`, [JSON_TYPE], '{}'),
    ask(`GET ${path}`, ['If-None-Match: {etag}']),
    ask(`GET ${path}`, ['If-None-Match: W/{etag}, "x"']),
    ask(`GET ${path}`, ['If-None-Match: *']),
    ask(`GET ${path}`, ['If-None-Match: "x"', 'Accept-Encoding: br, gzip']),
    ask(`GET ${path}`, ['If-Match: "x"']),
    ask(`GET ${path}`, [STRANGER]),
    ask(`GET ${path}?x=y`),
    ask(`GET ${path}/`),
  ]),
  ...resources.slice(1).map(path => ask(`POST ${path}`, [JSON_TYPE], '{}')),
  ...[
    'text/html',
    'text/markdown',
    'text/*;q=0.1, text/markdown',
    'application/xml',
    'text/html;q=0',
    '*/*',
    'x',
  ].flatMap(type => ['/docs/api', '/api/openapi.json'].map(path => ask(`GET ${path}`, [`Accept: ${type}`]))),
  ask('GET /'),
  ask('HEAD /nowhere'),
  ask('POST /nowhere', [JSON_TYPE], '{}'),
  ask('OPTIONS *'),
  ask('OPTIONS /nowhere'),
  ask('BREW /api/waitlist'),
  ask('PROPFIND /api/waitlist'),
  ask('GET /api/%68ealth'),
  ask('GET /api/%'),
  ask('GET http://elsewhere.example/api/health'),
  ask('GET /api/health', ['Connection: close']),
  ask('GET /api/health', ['Cookie: waitlist=1']),
  ask('GET /api/health', ['Range: bytes=0-1']),
  ask('GET /api/health', ['Host: twice']),
  raw('GET /api/health HTTP/1.0\r\n\r\n'),
  raw('GET /api/health HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n'),
  raw('GET /api/health HTTP/1.1\r\n\r\n'),
  raw('GET /api/health HTTP/2.0\r\nHost: localhost\r\n\r\n'),
  ask('OPTIONS /api/waitlist', [STRANGER, ...PREFLIGHT]),
  ask('OPTIONS /api/waitlist', [LANDING, 'Access-Control-Request-Method: DELETE']),
  // Bodies.
  ...[
    '',
    ' ',
    '{',
    '[]',
    '"x"',
    'null',
    '{}',
    '{"name":"Ada"}',
    '{"email":"ada@example.com"}',
    '{"name":"","email":"ada@example.com"}',
    '{"name":" \\t\\n ","email":"ada@example.com"}',
    '{"name":null,"email":"ada@example.com"}',
    '{"name":["Ada"],"email":"ada@example.com"}',
    '{"name":1,"email":"ada@example.com"}',
    '{"name":"a\\u0000b","email":"ada@example.com"}',
    '{"name":"\\ud800","email":"ada@example.com"}',
    '{"name":"Ada","email":""}',
    '{"name":"Ada","email":{}}',
    '{"name":"Ada","email":"a@b"}',
    '{"name":"Ada","email":"a b@example.com"}',
    '{"name":"Ada","email":"@example.com"}',
    '{"name":"Ada","email":"ada@example..com"}',
    '{"name":"Ada","email":"ada@münchen.de"}',
    '{"name":"Ada","email":"Ada <ada@example.com>"}',
    '{"name":"","email":""}',
    '{"name":"Ada","email":"ada@example.com","more":{"deep":[1]},"name":"Twice"}',
    '\ufeff{"name":"Ada","email":"bom@example.com"}',
    '{"__proto__":{"name":"Ada","email":"ada@example.com"}}',
    '{"name":"Zoë 🎉","email":" spaces@example.com\\n"}',
    `{"name":"${'n'.repeat(100)}","email":"hundred@example.com"}`,
    `{"name":"${'n'.repeat(101)}","email":"hundred@example.com"}`,
    `{"name":"${'🎉'.repeat(100)}","email":"astral@example.com"}`,
    `{"name":"Ada","email":"${'a'.repeat(64)}@${'b'.repeat(60)}.${'c'.repeat(60)}.${'d'.repeat(60)}.example"}`,
    `{"name":"Ada","email":"${'a'.repeat(250)}@example.com"}`,
    `{"name":"Ada","email":"ada@example.com","more":"${'x'.repeat(20_000)}"}`,
    `${'['.repeat(5_000)}`,
  ].map(body => post(body)),
  ...[
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-8',
    'application/json; charset=latin1',
    'APPLICATION/JSON',
    'application/problem+json',
    'application/jsonx',
    '',
  ].map((type, i) =>
    ask('POST /api/waitlist', [`Content-Type: ${type}`], `{"name":"Ada","email":"type-${i}@example.com"}`),
  ),
  ask('POST /api/waitlist', [], '{"name":"Ada","email":"ada@example.com"}'),
  ask('POST /api/waitlist', [JSON_TYPE]),
  join('gzip@example.com', 'Content-Encoding: gzip'),
  join('identity@example.com', 'Content-Encoding: identity'),
  join('expects@example.com', 'Expect: 100-continue'),
  join('expects@example.com', 'Expect: the unexpected'),
  join('cookie@example.com', 'Cookie: waitlist=1; __Host-waitlist=1'),
  join('german@example.com', 'Accept-Language: de'),
  join('closes@example.com', 'Connection: close'),
  post('27\r\n{"name":"Ada","email":"c@example.com"}\n\r\n0\r\n\r\n', 'Transfer-Encoding: chunked'),
  post('zz\r\n', 'Transfer-Encoding: chunked'),
  post('{}', 'Content-Length: 2', 'Transfer-Encoding: chunked'),
  post('', 'Content-Length: 99999999'),
  ask('GET /api/health', [`X: ${'y'.repeat(20_000)}`]),
  ask(`GET /${'x'.repeat(20_000)}`),
  ask(
    'GET /api/health',
    Array.from({ length: 150 }, (_, i) => `X-${i}: y`),
  ),
]

const people = (count: number, domain = 'example.com') =>
  Array.from({ length: count }, (_, i) => join(`person-${i}@${domain}`))

/** An address chooses what the email tool says to it. */
const withVendor = [
  ask('GET /api/waitlist'),
  ask('GET /api/health'),
  ask('GET /api/openapi.json'),
  ask('GET /docs/api', ['Accept: text/markdown']),
  join('ada@example.com'),
  join('ada@example.com'),
  join('existing@example.com'),
  join('existing@example.com'),
  join('invalid@example.com'),
  join('not an address'),
  ask('GET /api/health'),
]
const loops = (more: Readonly<Record<string, string>> = {}) => ({ PROVIDER: 'loops', LOOPS_API_KEY: 'key', ...more })

const challenged = [
  ...brief,
  ask('GET /api/challenge'),
  join('unsolved@example.com'),
  post('{"name":"Ada","email":"wrong@example.com","altcha":"eyJ4IjoxfQ=="}'),
  post('{"name":"Ada","email":"wrong@example.com","altcha":17}'),
  join('wrong@example.com', 'X-Captcha-Response: eyJ4IjoxfQ=='),
]
/** Solving takes seconds of processor time. */
const solved = [
  ...challenged,
  post('{"name":"Ada","email":"solved@example.com","altcha":"{solution}"}'),
  post('{"name":"Ada","email":"solved@example.com","altcha":"{solution}"}'),
  post('{"name":"Ada","email":"another@example.com","altcha":"{solution}"}'),
  ask('GET /api/challenge', [LANDING]),
  join('solved-2@example.com', 'X-Captcha-Response: {solution}'),
  ask('OPTIONS /api/challenge', [LANDING, ...PREFLIGHT]),
]

const confirming = {
  CONFIRM: 'mail',
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: 'Waitlist <waitlist@example.com>',
  BASE_URL: 'https://wait.example',
}
const messages = JSON.stringify({
  de: {
    new: 'Du bist auf der Warteliste.',
    known: 'Du bist schon auf der Warteliste.',
    emailInvalid: 'Bitte gib eine gültige E-Mail-Adresse ein.',
  },
})
const inLanguages = [
  ...brief,
  ...['de', 'de-AT, en;q=0.5', 'fr', '*', 'en, de', 'de;q=0'].flatMap((languages, i) => [
    join(`language-${i}@example.com`, `Accept-Language: ${languages}`),
    join(`language-${i}@example.com`, `Accept-Language: ${languages}`),
    join('not an address', `Accept-Language: ${languages}`),
  ]),
]
const forwarded = (...clients: string[]) =>
  clients.map((client, i) => join(`forwarded-${i}@example.com`, `X-Forwarded-For: ${client}`))
const suspicious = [
  ...brief,
  post('{"name":"https://casino.example","email":"eve@example.com"}'),
  join('m.allory@gmail.com'),
  join('mallory+1@gmail.com'),
  join('mallory+1@gmail.com'),
]
const ofDomains = [...brief, ...['blocked', 'sub.blocked', 'good.blocked', 'fine'].map(at => join(`a@${at}.example`))]

const cors = { CORS_ORIGINS: 'https://landing.example,https://other.example' }
const plain = (settings: Scenario['settings'], requests: readonly Request[] = brief): Scenario => ({
  settings,
  requests,
})

export const scenarios: Readonly<Record<string, Scenario>> = {
  defaults: { settings: {}, requests: fully },
  'the default rate limit': plain({ RATE_LIMIT: '' }),
  'RATE_LIMIT=3': plain({ RATE_LIMIT: '3' }, [...brief, ...people(3), join('no'), post('{'), ask('GET /api/health')]),
  'RATE_LIMIT=1': plain({ RATE_LIMIT: '1' }, [post('{'), ...people(2), ask('POST /api/waitlist', [], 'x')]),
  'RATE_LIMIT=1, CORS': plain({ RATE_LIMIT: '1', ...cors }, [
    join('a@b.example', LANDING),
    join('a@b.example', LANDING),
  ]),
  BASE_URL: plain({ BASE_URL: 'https://wait.example' }, fully),
  'BASE_URL with a port': plain({ BASE_URL: 'http://wait.example:8443/' }),
  TLS: { settings: {}, requests: fully, isTls: true },
  'TLS, BASE_URL': { settings: { BASE_URL: 'https://wait.example' }, requests: brief, isTls: true },
  'TLS, CORS': { settings: cors, requests: brief, isTls: true },
  CORS: plain(cors, fully),
  'CORS, a cookie for another site': plain({ ...cors, BASE_URL: 'https://wait.example' }),
  'the service named': plain({ SERVICE_NAME: 'Björk’s "Hütte" <1>', SERVICE_DESCRIPTION: 'Früh dabei & *mehr*.' }),
  'the event named': plain({ EVENT_NAME: 'early.access' }),
  'membership undisclosed': plain({ DISCLOSE_MEMBERSHIP: 'false' }, fully),
  'membership undisclosed, CORS': plain({ DISCLOSE_MEMBERSHIP: 'false', ...cors }),
  sources: plain({ TRACK_SOURCES: 'true' }, [
    ...brief,
    ask('POST /api/waitlist?utm_source=hn&ref=x', [JSON_TYPE], '{"name":"Ada","email":"source@example.com"}'),
    ask('POST /api/waitlist?utm_source=%', [JSON_TYPE], '{"name":"Ada","email":"source-2@example.com"}'),
  ]),
  'a query without sources': plain({}, [
    ask('POST /api/waitlist?utm_source=hn', [JSON_TYPE], '{"name":"Ada","email":"source@example.com"}'),
  ]),
  languages: {
    settings: { MESSAGES_FILE: 'messages.json' },
    requests: inLanguages,
    files: { 'messages.json': messages },
  },
  'languages, RATE_LIMIT=1': {
    settings: { MESSAGES_FILE: 'messages.json', RATE_LIMIT: '1' },
    requests: [join('a@example.com'), join('a@example.com', 'Accept-Language: de'), join('a@example.com')],
    files: { 'messages.json': messages },
  },
  'languages, membership undisclosed': {
    settings: { MESSAGES_FILE: 'messages.json', DISCLOSE_MEMBERSHIP: 'false' },
    requests: inLanguages,
    files: { 'messages.json': messages },
  },
  'TRUST_PROXY=1': plain(
    { TRUST_PROXY: '1', RATE_LIMIT: '1' },
    forwarded(
      '192.0.2.1',
      '192.0.2.1',
      '192.0.2.2',
      '192.0.2.9, 192.0.2.2',
      '2001:db8::1',
      '2001:db8::2',
      'garbage',
      '',
    ),
  ),
  'TRUST_PROXY=2': plain(
    { TRUST_PROXY: '2', RATE_LIMIT: '1' },
    forwarded('192.0.2.1, 10.0.0.1', '192.0.2.2, 10.0.0.1', '192.0.2.9, 192.0.2.2, 10.0.0.1', '192.0.2.4'),
  ),
  'TRUST_PROXY with networks': plain(
    { TRUST_PROXY: '127.0.0.0/8,10.0.0.0/8', RATE_LIMIT: '1' },
    forwarded('192.0.2.1', '192.0.2.1, 10.1.2.3', '192.0.2.2:99, 10.1.2.3', '[2001:db8::1]:99', '192.0.2.5'),
  ),
  'no proxy trusted': plain({ RATE_LIMIT: '2' }, forwarded('192.0.2.1', '192.0.2.2', '192.0.2.3')),
  'HOLD_ABOVE=2': plain({ HOLD_ABOVE: '2' }, [...people(4), ...people(4), ...brief]),
  'HOLD_ABOVE=1, membership undisclosed': plain({ HOLD_ABOVE: '1', DISCLOSE_MEMBERSHIP: 'false' }, [
    ...people(3),
    ...people(3),
  ]),
  HOLD_SUSPICIOUS: plain({ HOLD_SUSPICIOUS: 'true' }, suspicious),
  'HOLD_SUSPICIOUS, CORS': plain({ HOLD_SUSPICIOUS: 'true', ...cors }, suspicious),
  'a domain blocked': {
    settings: { BLOCKED_DOMAINS_FILE: 'blocked.txt' },
    requests: ofDomains,
    files: { 'blocked.txt': 'blocked.example\n' },
  },
  'a domain blocked, one of its own allowed': {
    settings: { BLOCKED_DOMAINS_FILE: 'blocked.txt' },
    requests: ofDomains,
    files: { 'blocked.txt': 'blocked.example\n!good.blocked.example\n' },
  },
  'a challenge': plain({ CHALLENGE: 'altcha' }, challenged),
  'a challenge, CORS': plain({ CHALLENGE: 'altcha', ...cors }, solved),
  'a challenge, membership undisclosed': plain({ CHALLENGE: 'altcha', DISCLOSE_MEMBERSHIP: 'false' }, challenged),
  'a challenge of a vendor that is away': plain(
    {
      CHALLENGE: 'cap',
      CHALLENGE_SECRET: 'secret',
      CHALLENGE_URL: 'http://127.0.0.1:9/key/',
    },
    [
      ask('GET /api/openapi.json'),
      join('ada@example.com'),
      post('{"name":"Ada","email":"ada@example.com","cap-token":"x"}'),
      post('{"name":"Ada","email":"ada@example.com","cap-token":""}'),
    ],
  ),
  'CONFIRM=mail': plain(confirming, [...brief, ask('GET /confirm'), ask('GET /unsubscribe')]),
  'CONFIRM=mail, membership undisclosed': plain({ ...confirming, DISCLOSE_MEMBERSHIP: 'false' }),
  'CONFIRM=mail, HOLD_SUSPICIOUS': plain({ ...confirming, HOLD_SUSPICIOUS: 'true' }, suspicious),
  'CONFIRM=mail, a challenge': plain({ ...confirming, CHALLENGE: 'altcha' }, challenged),
  'a webhook that is away': plain({
    WEBHOOK_URL: 'http://127.0.0.1:9/hook',
    WEBHOOK_SECRET: `whsec_${Buffer.from('for tests alone, of 32 bytes ...').toString('base64')}`,
  }),
  'a provider': { settings: loops(), requests: [...withVendor, ...brief], vendor: 'answers' },
  'a provider, membership undisclosed': {
    settings: loops({ DISCLOSE_MEMBERSHIP: 'false' }),
    requests: withVendor,
    vendor: 'answers',
  },
  'a provider, HOLD_ABOVE=1': { settings: loops({ HOLD_ABOVE: '1' }), requests: people(3), vendor: 'answers' },
  'a provider, CONFIRM=mail': { settings: loops(confirming), requests: withVendor, vendor: 'answers' },
  'a provider, TLS, CORS': {
    settings: loops(cors),
    requests: [...withVendor, ...brief],
    vendor: 'answers',
    isTls: true,
  },
  'a provider that refuses the key': { settings: loops(), requests: withVendor.slice(0, 6), vendor: 'refuses the key' },
  'a provider that fails': { settings: loops(), requests: withVendor.slice(0, 6), vendor: 'fails' },
  'a provider that hangs up': { settings: loops(), requests: withVendor.slice(0, 6), vendor: 'hangs up' },
  'a provider that limits': { settings: loops(), requests: withVendor.slice(0, 6), vendor: 'limits' },
  'a provider that is slow': {
    settings: loops(),
    requests: withVendor.slice(4, 6),
    vendor: 'is slow',
  },
  'a provider that is away': plain(loops({ LOOPS_BASE_URL: 'http://127.0.0.1:9' }), withVendor.slice(0, 6)),
  'a provider that is away, membership undisclosed': plain(
    loops({ LOOPS_BASE_URL: 'http://127.0.0.1:9', DISCLOSE_MEMBERSHIP: 'false' }),
    withVendor.slice(4, 6),
  ),
  'a provider that is away, CORS, languages': {
    settings: loops({ LOOPS_BASE_URL: 'http://127.0.0.1:9', ...cors, MESSAGES_FILE: 'messages.json' }),
    requests: [join('ada@example.com', LANDING), join('grace@example.com', 'Accept-Language: de')],
    files: { 'messages.json': messages },
  },
}
