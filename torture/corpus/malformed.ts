/**
 * Requests that are malformed or hostile, each with what RFC 9112 lets a server answer. Names of sections are those of
 * RFC 9112 unless another is named.
 */

import { printable } from '../printable.ts'

export interface Malformed {
  readonly what: string
  readonly bytes: Buffer
  /** The statuses that each answer may have, in order: none may follow. 0: the connection may close without it. */
  readonly answers: readonly (readonly number[])[]
  /** An answer to HEAD has no content. */
  readonly isHead: boolean
  /** The client shuts down its side after the last byte. */
  readonly isHalfClosed?: boolean
}

/** Of whoever hides in another request, with the number of that request: nobody may ever be stored under it. */
const SMUGGLED = 'smuggled-000@example.com'
/** The number of the request that it hides in; null if it does not. */
export const hiddenIn = (email: string): number | null => {
  const number = /^smuggled-(\d+)@/.exec(email)?.[1]
  return number === undefined ? null : Number(number)
}
/** Of requests that may be taken. */
export const TAKEN = 'taken@example.com'

const signup = (email: string) => JSON.stringify({ name: 'Mallory', email })
const body = signup(TAKEN)
const size = body.length.toString(16)
const host = 'Host: x\r\n'
const get = `GET /api/health HTTP/1.1\r\n${host}`
const post = `POST /api/waitlist HTTP/1.1\r\n${host}Content-Type: application/json\r\n`
const chunked = `${post}Transfer-Encoding: chunked\r\n`
const length = (count: number | string) => `Content-Length: ${count}\r\n`
const whole = `${post}${length(body.length)}\r\n${body}`
const smuggled = `${post}${length(signup(SMUGGLED).length)}\r\n${signup(SMUGGLED)}`
/** For one reader an empty chunked body with a request behind it, for another a body of that length. */
const hidden = `0\r\n\r\n${smuggled}`
const inChunks = `${size}\r\n${body}\r\n0\r\n\r\n`

const bad = [[400]]
const closed = [[0, 400]]
/** Either may be: the RFC leaves it to the server, or the request is odd and not wrong. */
const taken = [[200, 400]]
const ignored = [[200]]
const tooLarge = [[0, 400, 413, 414, 431]]

type Row = readonly [what: string, bytes: string | Buffer, answers: Malformed['answers']]

/** §6.1, §6.3, §11.2: who reads both lengths, or one that another reader does not see, lets a second request in. */
const smuggling: readonly Row[] = [
  ['CL.TE', `${chunked}${length(hidden.length)}\r\n${hidden}`, bad],
  [
    'TE.CL',
    `${post}${length(4)}Transfer-Encoding: chunked\r\n\r\n${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
    bad,
  ],
  ['CL.0 with chunked', `${post}${length(0)}Transfer-Encoding: chunked\r\n\r\n${inChunks}`, bad],
  ['CL.TE in HTTP/1.0', `${chunked}${length(hidden.length)}\r\n${hidden}`.replace('1.1', '1.0'), bad],
  ['chunked in HTTP/1.0', `${chunked}\r\n${hidden}`.replace('1.1', '1.0'), bad],
  ...[
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: chunke',
    'Transfer-Encoding: chunked, identity',
    'Transfer-Encoding: identity, chunked',
    'Transfer-Encoding: chunked, chunked',
    'Transfer-Encoding: chunked;q=1',
    'Transfer-Encoding: "chunked"',
    "Transfer-Encoding: 'chunked'",
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding:',
    'Transfer-Encoding: ,chunked',
    'Transfer-Encoding: chunked,',
    'Transfer-Encoding: ch\x00unked',
    'Transfer-Encoding:\x0bchunked',
    'Transfer-Encoding:\x0cchunked',
    'Transfer-Encoding: \xa0chunked',
    'Transfer-Encoding: chunked\x00',
    'Transfer-Encoding: \xe7hunked',
    'Transfer-Encoding : chunked',
    'Transfer-Encoding\t: chunked',
    'Transfer-Encoding\x00: chunked',
    'Transfer-Encoding\xa0: chunked',
    ' Transfer-Encoding: chunked',
    '\tTransfer-Encoding: chunked',
    'Transfer-Encoding:\r\n chunked',
    'Transfer-Encoding: \r\n\tchunked',
    'X: y\r\n Transfer-Encoding: chunked',
    'X: y\rTransfer-Encoding: chunked',
    'X: y\x00Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity',
    'Transfer-Encoding: identity\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: cow',
    'Transfer-Encoding: cow\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding chunked',
    ':Transfer-Encoding: chunked',
    'Transfer-Encoding: chunked\r',
  ].flatMap((field): Row[] => [
    // Alone, an unknown coding may be a 501 (§6.1).
    [`${printable(field)}, alone`, `${post}${field}\r\n\r\n${hidden}`, [[400, 501]]],
    [`${printable(field)}, with a length`, `${post}${length(hidden.length)}${field}\r\n\r\n${hidden}`, [[400, 501]]],
  ]),
  // §2.2: a line may end in LF alone. Then this is both lengths again.
  [
    'X: y, LF, Transfer-Encoding',
    `${post}${length(hidden.length)}X: y\nTransfer-Encoding: chunked\r\n\r\n${hidden}`,
    bad,
  ],
  // These names are other fields, which nobody knows: the body is as long as it says, and no JSON.
  ...['Transfer_Encoding', 'Transfer-Encodings', 'X-Transfer-Encoding', 'TransferEncoding'].map(
    (name): Row => [name, `${post}${length(hidden.length)}${name}: chunked\r\n\r\n${hidden}`, bad],
  ),
  // A body that nobody expects is still a body.
  ...['GET', 'HEAD', 'OPTIONS', 'DELETE', 'PUT', 'PATCH', 'TRACE'].map(
    (method): Row => [
      `${method} with a request as its body`,
      `${method} /api/health HTTP/1.1\r\n${host}${length(smuggled.length)}\r\n${smuggled}`,
      [[200, 204, 400, 405]],
    ],
  ),
  [
    'GET with a request in a chunk',
    `${get}Transfer-Encoding: chunked\r\n\r\n${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
    taken,
  ],
  [
    '404 with a request as its body',
    `POST /nowhere HTTP/1.1\r\n${host}${length(smuggled.length)}\r\n${smuggled}`,
    [[404]],
  ],
  [
    'OPTIONS * with a request as its body',
    `OPTIONS * HTTP/1.1\r\n${host}${length(smuggled.length)}\r\n${smuggled}`,
    [[204, 400]],
  ],
  [
    '415 with a request as its body',
    `${post.replace('application/json', 'text/plain')}${length(smuggled.length)}\r\n${smuggled}`,
    [[415]],
  ],
  ['417 with a request as its body', `${post}Expect: x\r\n${length(smuggled.length)}\r\n${smuggled}`, [[417]]],
  [
    '412 with a request as its body',
    `GET /docs/api HTTP/1.1\r\n${host}If-Match: "x"\r\n${length(smuggled.length)}\r\n${smuggled}`,
    [[412]],
  ],
  ['two Hosts with a request as the body', `${post}Host: y\r\n${length(smuggled.length)}\r\n${smuggled}`, bad],
  ['413 with requests as its body', `${post}${length(smuggled.length * 200)}\r\n${smuggled.repeat(200)}`, [[413]]],
  ['CONNECT with a request behind it', `CONNECT x:443 HTTP/1.1\r\n${host}\r\n${smuggled}`, [[0, 400, 405, 501]]],
  [
    'an upgrade with a request behind it',
    `${get}Connection: Upgrade, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n${smuggled}`,
    ignored,
  ],
  ['a request behind a close', `${get}Connection: close\r\n\r\n${smuggled}`, ignored],
  ['a request behind HTTP/1.0', `${get.replace('1.1', '1.0')}\r\n${smuggled}`, ignored],
  ['a request behind garbage', `GARBAGE\r\n\r\n${smuggled}`, [[400, 501]]],
  // §9.6: who says "close" must not process what comes behind.
  ['a request behind no Host', `GET /api/health HTTP/1.1\r\n\r\n${smuggled}`, bad],
  ['a request behind two Hosts', `${get}Host: y\r\n\r\n${smuggled}`, bad],
  ['a request behind too many fields', `${get}${'X: y\r\n'.repeat(100)}\r\n${smuggled}`, [[431]]],
  ['a request behind a version', `${get.replace('1.1', '2.0')}\r\n${smuggled}`, [[400, 505]]],
  ['a request behind the asterisk', `GET * HTTP/1.1\r\n${host}\r\n${smuggled}`, bad],
  ['a request behind an expectation', `${get}Expect: x\r\n\r\n${smuggled}`, [[417]]],
  ['a request behind a large body', `${post}${length(20_000)}\r\n${'x'.repeat(20_000)}${smuggled}`, [[413]]],
  ['a request behind a large chunk', `${chunked}\r\n4e20\r\n${'x'.repeat(20_000)}\r\n${hidden}`, [[413]]],
  [
    'a request behind chunks of another type',
    `${chunked.replace('application/json', 'text/plain')}\r\n1\r\nx\r\n${hidden}`,
    [[415]],
  ],
]

/** §6.2, §6.3; RFC 9110 §8.6: 1*DIGIT, once, or the same several times. */
const lengths: readonly Row[] = [
  ...[
    '-1',
    '+41',
    '0x29',
    '41.0',
    '4e1',
    '41;',
    '41 1',
    '4,1',
    '"41"',
    'x',
    '\xd9\xa3',
    '',
    '4\x001',
    '41, 42',
    '41,',
    '18446744073709551657',
    '9'.repeat(40),
  ].map(
    (value): Row => [
      `Content-Length: ${printable(value.slice(0, 20))}`,
      `${post}Content-Length: ${value}\r\n\r\n${body}`,
      [[400, 413]],
    ],
  ),
  ['two lengths', `${post}${length(3)}${length(body.length)}\r\n${body}`, bad],
  ['two lengths, the longer first', `${post}${length(body.length)}${length(3)}\r\n${body}`, bad],
  ['one length twice', `${post}${length(body.length)}${length(body.length)}\r\n${body}`, taken],
  ['one length twice in a list', `${post}${length(`${body.length}, ${body.length}`)}\r\n${body}`, taken],
  ['a length with zeros in front', `${post}${length(`000${body.length}`)}\r\n${body}`, taken],
  ['a length with blanks around', `${post}Content-Length: \t ${body.length} \t\r\n\r\n${body}`, taken],
  ['a length that is folded', `${post}Content-Length:\r\n ${body.length}\r\n\r\n${body}`, taken],
  ['a space before the colon of the length', `${post}Content-Length : ${body.length}\r\n\r\n${body}`, bad],
  ['a length that is too short', `${post}${length(5)}\r\n${body}`, bad],
  ['a length of 0 before a body', `${post}${length(0)}\r\n${body}`, bad],
  [
    'no length before a body',
    `${post}\r\n${body}`,
    [
      [400, 411],
      [400, 501],
    ],
  ],
  ['a length that is too long, half-closed', `${post}${length(100)}\r\n${body}`, closed],
  ['a length of 2 GB', `${post}${length(2 ** 31)}\r\n${body}`, [[413]]],
  ['a length of 2^53', `${post}${length(2 ** 53)}\r\n${body}`, [[413]]],
]

/** §7.1 */
const chunks: readonly Row[] = [
  ...[
    'xyz',
    '',
    ' ',
    '-1',
    '+29',
    '0x29',
    '2 9',
    '29g',
    '"29"',
    '29\x00',
    '2\x009',
    '100000000000000029',
    'ffffffffffffffff',
    '7fffffffffffffff',
    'f'.repeat(40),
    '-0',
    '29,29',
    '\xef\xbc\x92',
  ].map(
    (size): Row => [
      `chunk size ${printable(size.slice(0, 20))}`,
      `${chunked}\r\n${size}\r\n${body}\r\n0\r\n\r\n`,
      [[400, 408, 413]],
    ],
  ),
  ['a chunk size with a space in front', `${chunked}\r\n ${inChunks}`, bad],
  ['a chunk size with a space behind', `${chunked}\r\n${size} \r\n${body}\r\n0\r\n\r\n`, taken],
  ['a chunk size with a tab behind', `${chunked}\r\n${size}\t\r\n${body}\r\n0\r\n\r\n`, taken],
  ['a chunk size with zeros in front', `${chunked}\r\n${'0'.repeat(8)}${inChunks}`, taken],
  ['a chunk size with 10,000 zeros in front', `${chunked}\r\n${'0'.repeat(10_000)}${inChunks}`, [[200, 400, 413]]],
  ['a chunk size that ends in LF', `${chunked}\r\n${size}\n${body}\r\n0\r\n\r\n`, bad],
  ['a chunk size that ends in CR', `${chunked}\r\n${size}\r${body}\r\n0\r\n\r\n`, bad],
  ['a chunk that ends in LF', `${chunked}\r\n${size}\r\n${body}\n0\r\n\r\n`, bad],
  ['a chunk that does not end', `${chunked}\r\n${size}\r\n${body}0\r\n\r\n`, bad],
  ['a chunk that is longer than it says', `${chunked}\r\n5\r\n${body}\r\n0\r\n\r\n`, bad],
  ['a last chunk that ends in LF', `${chunked}\r\n${size}\r\n${body}\r\n0\n\n${smuggled}`, bad],
  ['a last chunk without an end, then a request', `${chunked}\r\n${size}\r\n${body}\r\n0\r\n${smuggled}`, bad],
  ['a last chunk of many zeros', `${chunked}\r\n${size}\r\n${body}\r\n${'0'.repeat(20)}\r\n\r\n`, taken],
  ['chunks of one byte', `${chunked}\r\n${[...body].map(byte => `1\r\n${byte}\r\n`).join('')}0\r\n\r\n`, [[200]]],
  ['20,000 chunks of one byte', `${chunked}\r\n${'1\r\n \r\n'.repeat(20_000)}0\r\n\r\n`, [[400, 413]]],
  ['20,000 chunks with extensions', `${chunked}\r\n${'1;a=b\r\n \r\n'.repeat(20_000)}0\r\n\r\n`, [[400, 413]]],
  ['a chunk extension', `${chunked}\r\n${size};a=b;c="d"\r\n${body}\r\n0;e\r\n\r\n`, taken],
  ['a chunk extension without a name', `${chunked}\r\n${size};\r\n${body}\r\n0\r\n\r\n`, taken],
  ['a chunk extension of 20 KB', `${chunked}\r\n${size};a=${'b'.repeat(20_000)}\r\n${body}\r\n0\r\n\r\n`, tooLarge],
  [
    'a chunk extension with a quoted line end',
    `${chunked}\r\n${size};a="\r\n${body}\r\n0\r\n\r\n${smuggled}"\r\n`,
    bad,
  ],
  ['a chunk extension with LF', `${chunked}\r\n2;\nxx\r\n${size}\r\n${body}\r\n0\r\n\r\n${smuggled}`, bad],
  ['a chunk extension with CR', `${chunked}\r\n${size};a\rb\r\n${body}\r\n0\r\n\r\n`, bad],
  ['a chunk extension with NUL', `${chunked}\r\n${size};a\x00\r\n${body}\r\n0\r\n\r\n`, bad],
  ['a trailer', `${chunked}\r\n${size}\r\n${body}\r\n0\r\nX: y\r\n\r\n`, [[200]]],
  ['a length as a trailer', `${chunked}\r\n${size}\r\n${body}\r\n0\r\n${length(smuggled.length)}\r\n`, taken],
  ['a coding as a trailer', `${chunked}\r\n${size}\r\n${body}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n`, taken],
  ['a Host as a trailer', `${chunked}\r\n${size}\r\n${body}\r\n0\r\nHost: y\r\n\r\n`, taken],
  [
    'a client address as a trailer',
    `${chunked}\r\n${size}\r\n${body}\r\n0\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n`,
    taken,
  ],
  ['a folded trailer', `${chunked}\r\n${size}\r\n${body}\r\n0\r\nX: y\r\n z\r\n\r\n`, taken],
  ['a trailer with NUL', `${chunked}\r\n${size}\r\n${body}\r\n0\r\nX: \x00\r\n\r\n`, bad],
  [
    'a trailer of 20 KB',
    `${chunked}\r\n${size}\r\n${body}\r\n0\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
    [[200, 400, 413, 431]],
  ],
  [
    '10,000 trailers',
    `${chunked}\r\n${size}\r\n${body}\r\n0\r\n${'X: y\r\n'.repeat(10_000)}\r\n`,
    [[200, 400, 413, 431]],
  ],
  ['no last chunk, half-closed', `${chunked}\r\n${size}\r\n${body}\r\n`, closed],
  ['half a chunk, half-closed', `${chunked}\r\nff\r\n${body}`, closed],
]

/** §2.2, §3 */
const lines: readonly Row[] = [
  ['every line ends in LF', `${get}\r\n`.replaceAll('\r', ''), taken],
  ['every line ends in CR', `${get}\r\n`.replaceAll('\n', ''), closed],
  ['every line ends in LF CR', `${get}\r\n`.replaceAll('\r\n', '\n\r'), bad],
  ['every line ends in CR CR LF', `${get}\r\n`.replaceAll('\r\n', '\r\r\n'), bad],
  ['the empty line is LF', `${get}\n`, taken],
  ['a bare CR in a value', `${get}X: a\rb\r\n\r\n`, bad],
  ['a bare CR in the request line', `GET /api/health\r HTTP/1.1\r\n${host}\r\n`, bad],
  ['an empty line in front', `\r\n${get}\r\n`, taken],
  ['1,000 empty lines in front', `${'\r\n'.repeat(1_000)}${get}\r\n`, taken],
  ['LF in front', `\n${get}\r\n`, taken],
  ['a space in front', ` ${get}\r\n`, [[400, 501]]],
  ['two spaces', `GET  /api/health HTTP/1.1\r\n${host}\r\n`, taken],
  ['tabs', `GET\t/api/health\tHTTP/1.1\r\n${host}\r\n`, [[200, 400, 501]]],
  ['a space behind the version', `GET /api/health HTTP/1.1 \r\n${host}\r\n`, taken],
  ['a space in the target', `GET /api /health HTTP/1.1\r\n${host}\r\n`, bad],
  ['a second version', `GET /api/health HTTP/1.1 HTTP/1.1\r\n${host}\r\n`, bad],
  ['a method in small letters', `get /api/health HTTP/1.1\r\n${host}\r\n`, [[400, 501]]],
  ['an unknown method', `BREW /api/health HTTP/1.1\r\n${host}\r\n`, [[400, 405, 501]]],
  ['a method that is a prefix', `GE /api/health HTTP/1.1\r\n${host}\r\n`, [[400, 405, 501]]],
  ['a method that is longer', `GETS /api/health HTTP/1.1\r\n${host}\r\n`, [[400, 405, 501]]],
  ['a method of 10 KB', `${'G'.repeat(10_000)} /api/health HTTP/1.1\r\n${host}\r\n`, [[400, 431, 501]]],
  ['no method', `/api/health HTTP/1.1\r\n${host}\r\n`, [[400, 501]]],
  ['a method with NUL', `GE\x00T /api/health HTTP/1.1\r\n${host}\r\n`, [[400, 501]]],
  ...[
    'HTTP/0.9',
    'HTTP/1.2',
    'HTTP/1.9',
    'HTTP/2.0',
    'HTTP/3.0',
    'HTTP/9.9',
    'HTTP/1',
    'HTTP/1.',
    'HTTP/.1',
    'HTTP/01.1',
    'HTTP/1.10',
    'HTTP/1.1.1',
    'HTTP/-1.1',
    'HTTP/1,1',
    'HTTP/1.1x',
    'http/1.1',
    'HTTX/1.1',
    'HTTPS/1.1',
    'HTTP 1.1',
    'HTTP/\x001.1',
    'ICY/1.0',
    'ICE/1.0',
    'SIP/2.0',
  ].map(
    (version): Row => [
      `version ${printable(version)}`,
      `GET /api/health ${version}\r\n${host}\r\n`,
      // A minor version that is higher is taken as the highest that is known (RFC 9110 §2.5).
      /^HTTP\/1\.[29]$/.test(version) ? [[200, 400, 505]] : [[400, 501, 505]],
    ],
  ),
  ['HTTP/0.9', 'GET /api/health\r\n', [[0, 400, 408, 505]]],
  // Node's parser takes RTSP for HTTP and does not say so. Nobody else reads these bytes as two requests.
  ['RTSP', 'DESCRIBE rtsp://x/api/health RTSP/1.0\r\nCSeq: 1\r\n\r\n', [[400, 404, 501, 505]]],
  ['SOURCE of another protocol', `SOURCE /api/health ICE/1.0\r\n${host}\r\n`, [[400, 405, 501, 505]]],
]

/** §3.2; RFC 3986 */
const targets: readonly Row[] = [
  ['the absolute form', `GET http://x/api/health HTTP/1.1\r\n${host}\r\n`, ignored],
  [
    'the absolute form of another host',
    `GET http://evil.example/api/health HTTP/1.1\r\n${host}\r\n`,
    [[200, 400, 404, 421]],
  ],
  ['the absolute form with a user', `GET http://u:p@x/api/health HTTP/1.1\r\n${host}\r\n`, taken],
  ['the absolute form without a host', `GET http:///api/health HTTP/1.1\r\n${host}\r\n`, [[200, 400, 404]]],
  ['the absolute form without anything', `GET http:// HTTP/1.1\r\n${host}\r\n`, [[302, 400, 404]]],
  ['the absolute form of another scheme', `GET gopher://x/api/health HTTP/1.1\r\n${host}\r\n`, [[200, 400, 404, 421]]],
  ['a file', `GET file:///etc/passwd HTTP/1.1\r\n${host}\r\n`, [[400, 404]]],
  ['the authority form with GET', `GET x:443 HTTP/1.1\r\n${host}\r\n`, [[400, 404]]],
  ['CONNECT', `CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n`, [[0, 400, 405, 501]]],
  ['CONNECT with a path', `CONNECT /api/health HTTP/1.1\r\n${host}\r\n`, [[0, 400, 405, 501]]],
  ['the asterisk with GET', `GET * HTTP/1.1\r\n${host}\r\n`, bad],
  ['the asterisk with POST', `POST * HTTP/1.1\r\n${host}\r\n`, bad],
  ['two slashes', `GET //evil.example/api/health HTTP/1.1\r\n${host}\r\n`, [[400, 404]]],
  ['no slash', `GET api/health HTTP/1.1\r\n${host}\r\n`, [[400, 404]]],
  ['only a query', `GET ?x HTTP/1.1\r\n${host}\r\n`, [[400, 404]]],
  ['a fragment', `GET /api/health#x HTTP/1.1\r\n${host}\r\n`, [[200, 400, 404]]],
  ...[
    '/%',
    '/%zz',
    '/%00',
    '/%c0%af',
    '/%ff',
    '/api%2fhealth',
    '/../api/health',
    '/%2e%2e/api/health',
    '/api/./health',
    '/api/health/..%2f',
    '/api/health%0d%0aX:%20y',
    '/api\\health',
    '/api/health;x',
    '/api/health\x7f',
    '/api/health\x01',
    '/api/health\xff',
    '/api/health\x00',
    '/"<>^`{|}',
  ].map((target): Row => [`target ${printable(target)}`, `GET ${target} HTTP/1.1\r\n${host}\r\n`, [[400, 404]]]),
  ['a target of 10 KB', `GET /${'a'.repeat(10_000)} HTTP/1.1\r\n${host}\r\n`, [[414, 431]]],
  ['a query of 10 KB', `GET /api/health?${'a'.repeat(10_000)} HTTP/1.1\r\n${host}\r\n`, [[414, 431]]],
  ['a target of 1 MB', `GET /${'a'.repeat(1_000_000)} HTTP/1.1\r\n${host}\r\n`, [[414, 431]]],
]

/** §3.2, §5; RFC 9110 §5.4, §5.5, §7.2 */
const fields: readonly Row[] = [
  ['no Host', 'GET /api/health HTTP/1.1\r\n\r\n', bad],
  ['two Hosts', `${get}Host: y\r\n\r\n`, bad],
  ['one Host twice', `${get}${host}\r\n`, bad],
  ['an empty Host', 'GET /api/health HTTP/1.1\r\nHost:\r\n\r\n', taken],
  ...[
    'a b',
    'a/b',
    'u@a',
    'a, b',
    '[::1',
    '::1',
    'a:1:2',
    'a:b',
    'a\x00',
    'a\x01',
    'a\xff',
    'a?b',
    'a#b',
    'a\\b',
    '%zz',
    '<a>',
  ].map((value): Row => [`Host: ${printable(value)}`, `GET /api/health HTTP/1.1\r\nHost: ${value}\r\n\r\n`, bad]),
  ['a port that does not exist', 'GET /api/health HTTP/1.1\r\nHost: x:99999\r\n\r\n', taken],
  ['a Host of 7 KB', `GET /api/health HTTP/1.1\r\nHost: ${'a'.repeat(7_000)}\r\n\r\n`, taken],
  ['10,000 fields', `${get}${'X: y\r\n'.repeat(10_000)}\r\n`, [[431]]],
  ['10,000 names', `${get}${Array.from({ length: 10_000 }, (_, i) => `X-${i}: y\r\n`).join('')}\r\n`, [[431]]],
  ['100 fields', `${get}${'X: y\r\n'.repeat(100)}\r\n`, [[431]]],
  ['10,000 empty fields', `${get}${'X:\r\n'.repeat(10_000)}\r\n`, [[431]]],
  ['a field of 9 KB', `${get}X: ${'y'.repeat(9_000)}\r\n\r\n`, [[431]]],
  ['a field of 1 MB', `${get}X: ${'y'.repeat(1_000_000)}\r\n\r\n`, [[431]]],
  ['a name of 9 KB', `${get}${'X'.repeat(9_000)}: y\r\n\r\n`, [[431]]],
  ['a Cookie of 7 KB', `${get}Cookie: ${'a=b; '.repeat(1_400)}\r\n\r\n`, ignored],
  ['a field that never ends its line', `${get}X: ${'y'.repeat(100_000)}`, [[431]]],
  ['no name', `${get}: y\r\n\r\n`, bad],
  ['no colon', `${get}X\r\n\r\n`, bad],
  ...['X Y', 'X(', 'X@', 'X\x00', 'X\x01', 'X\xff', 'X\x7f', 'X/', '"X"', 'X\t'].map(
    (name): Row => [`name ${printable(name)}`, `${get}${name}: y\r\n\r\n`, bad],
  ),
  ['a folded field', `${get}X: y\r\n z\r\n\r\n`, taken],
  ['a fold before the first field', `GET /api/health HTTP/1.1\r\n ${host}\r\n`, bad],
  ['a value with NUL', `${get}X: a\x00b\r\n\r\n`, bad],
  ['a value with a control', `${get}X: a\x01b\r\n\r\n`, taken],
  ['a value with DEL', `${get}X: a\x7fb\r\n\r\n`, taken],
  ['a value with bytes above ASCII', `${get}X: \xe4\xff\r\n\r\n`, taken],
  [
    'names that JavaScript knows',
    `${get}__proto__: x\r\nconstructor: x\r\ntoString: x\r\nhasOwnProperty: x\r\n\r\n`,
    ignored,
  ],
  [
    'two media types',
    `${whole.replace('Content-Type', 'Content-Type: text/plain\r\nContent-Type')}`,
    [[200, 400, 415]],
  ],
  ['an unknown expectation', `${get}Expect: x\r\n\r\n`, [[200, 417]]],
  ['two expectations', `${whole.replace('Host', 'Expect: 100-continue\r\nExpect: x\r\nHost')}`, [[200, 417]]],
  ['a length named by Connection', `${whole.replace('Host', 'Connection: content-length\r\nHost')}`, taken],
  ['a coding named by Connection', `${chunked}Connection: transfer-encoding\r\n\r\n${inChunks}`, taken],
  ['Connection says both', `${get}Connection: close, keep-alive\r\n\r\n`, ignored],
  ['1,000 ranges', `${get}Range: bytes=${'0-,'.repeat(1_000)}0-\r\n\r\n`, ignored],
  ['1,000 entity tags', `GET /docs/api HTTP/1.1\r\n${host}If-None-Match: ${'"x", '.repeat(1_000)}"x"\r\n\r\n`, ignored],
  [
    'an entity tag that does not end',
    `GET /docs/api HTTP/1.1\r\n${host}If-None-Match: "${'x'.repeat(7_000)}\r\n\r\n`,
    ignored,
  ],
  ['1,000 media ranges', `GET /docs/api HTTP/1.1\r\n${host}Accept: ${'a/b;q=0,'.repeat(900)}\r\n\r\n`, ignored],
  ['a compressed body', `${whole.replace('Host', 'Content-Encoding: gzip\r\nHost')}`, [[415]]],
  [
    '600 client addresses',
    `${whole.replace('Host', `X-Forwarded-For: ${'192.0.2.1, '.repeat(600)}::1\r\nHost`)}`,
    ignored,
  ],
]

/** What is no request at all. */
const others: readonly Row[] = [
  ['TLS', Buffer.from('16030100c8010000c403037f', 'hex'), [[0, 400, 501]]],
  ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [[0, 400, 501, 505]]],
  [
    'the preface of HTTP/2, then frames',
    Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.alloc(9_000)]),
    [[0, 400, 501, 505]],
  ],
  ['PROXY protocol, in words', `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${get}\r\n`, [[400, 501]]],
  [
    'PROXY protocol, in bytes',
    Buffer.concat([
      Buffer.from('0d0a0d0a000d0a515549540a2111000c', 'hex'),
      Buffer.alloc(12),
      Buffer.from(`${get}\r\n`),
    ]),
    [[400, 501]],
  ],
  ['SSH', 'SSH-2.0-OpenSSH_9.9\r\n', [[400, 501]]],
  ['SMTP', 'EHLO x\r\nMAIL FROM:<a@b>\r\n', [[400, 501]]],
  ['Redis', '*1\r\n$4\r\nPING\r\n', [[400, 501]]],
  ['SOCKS', Buffer.from('050100', 'hex'), [[400, 501]]],
  ['JSON', `${body}\r\n\r\n`, [[400, 501]]],
  ['a mark of byte order', `\xef\xbb\xbf${get}\r\n`, [[400, 501]]],
  ['UTF-16', Buffer.from(`${get}\r\n`, 'utf16le'), [[400, 501]]],
  ['1,000 NULs', Buffer.alloc(1_000), [[400, 501]]],
  ['1 MB of NULs', Buffer.alloc(1_000_000), [[400, 501]]],
  ['64 KB without an end of line', 'A'.repeat(65_536), [[400, 431, 501]]],
  ['1 MB of empty lines', '\r\n'.repeat(500_000), [[0, 400, 408]]],
]

/** The answer must arrive, although the client is still sending what nobody reads. */
const long: readonly Row[] = [50, 100, 200, 500, 1_000, 2_000].flatMap((kilobytes): Row[] => [
  [`a body of ${kilobytes} KB`, `${post}${length(kilobytes * 1_000)}\r\n${'x'.repeat(kilobytes * 1_000)}`, [[413]]],
  [
    `a chunk of ${kilobytes} KB`,
    `${chunked}\r\n${(kilobytes * 1_000).toString(16)}\r\n${'x'.repeat(kilobytes * 1_000)}\r\n0\r\n\r\n`,
    [[413]],
  ],
  [`${kilobytes} KB behind garbage`, `GARBAGE\r\n\r\n${'x'.repeat(kilobytes * 1_000)}`, [[400, 501]]],
])

/** Cut at any place, and the client's side shut down. */
const cut: readonly Row[] = [
  ['a whole signup, half-closed', whole, [[200]]],
  ['a whole signup in chunks, half-closed', `${chunked}\r\n${inChunks}`, [[200]]],
  ['a whole GET, half-closed', `${get}\r\n`, [[200]]],
  ...[1, 5, 20, 30, get.length - 1, get.length].map(
    (count): Row => [`the first ${count} bytes, half-closed`, `${get}\r\n`.slice(0, count), closed],
  ),
]

const endsHalf = /half-closed$/

export const malformed: readonly Malformed[] = [
  ...smuggling,
  ...lengths,
  ...chunks,
  ...lines,
  ...targets,
  ...fields,
  ...others,
  ...long,
  ...cut,
].map(([what, bytes, answers], i) => ({
  what,
  bytes:
    typeof bytes === 'string'
      ? Buffer.from(bytes.replaceAll(SMUGGLED, SMUGGLED.replace('000', String(i).padStart(3, '0'))), 'latin1')
      : bytes,
  answers,
  isHead: typeof bytes === 'string' && bytes.startsWith('HEAD '),
  ...(endsHalf.test(what) && { isHalfClosed: true }),
}))
