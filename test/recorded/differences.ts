/**
 * What may differ from the recording. Each pattern is matched against the lines that the replay prints:
 *
 *     - GET /docs/api · head: cache-control: what was recorded, and is gone
 *     + the document, text/html · body: <p>what is there now
 *     ~ POST /api/waitlist | … · $.message: "recorded" → "now"
 *
 * with "[name of the combination] " before each. Anything that no pattern allows ends the replay with 1. A pattern that
 * matches nothing any more is told, so that it can go.
 */
export const allowed: readonly { readonly pattern: RegExp; readonly because: string }[] = [
  {
    pattern:
      /^\[a domain blocked\] .*"a@(sub|good)\.blocked\.example"|^\[a domain blocked, .*"a@sub\.blocked\.example"/,
    because: 'a domain that is blocked covers its subdomains',
  },
  {
    pattern: /If-Match: "x"/,
    because: 'If-Match on documents was withdrawn, and with it 412',
  },
  {
    pattern:
      /parameters\.data: \{"range":2000\} → undefined|- the document, .* body: *(<b>)?"?(data|range)"?|- the document, .* body: {4}\},/,
    because: 'a challenge no longer says how hard it is, since that is a constant',
  },
  {
    pattern: /the document, text\/|GET \/docs\/api.* · body: /,
    because: 'the documentation is a short page without a script, made from a guide and the OpenAPI document',
  },
  {
    pattern: /the document, application\/json · \$\.(info|tags|paths|components)/,
    because: 'there is one OpenAPI document for every configuration, and fewer words in it',
  },
  {
    pattern: /^\[[^\]]*\] [-+] .* · head: content-security-policy: .*style-src 'sha256-<hash>'/,
    because: 'the documentation has no script',
  },
  {
    pattern: /(GET|POST) \/(confirm|unsubscribe)/,
    because: 'the pages behind links in mails are always there, with the headers of every page',
  },
  {
    pattern: /\[malformed\] [-+] 412 with a request as its body/,
    because: 'If-Match on documents was withdrawn, and with it 412',
  },
  {
    pattern: /head: (content-language: |vary: (Origin, )?Accept-Language)|Accept-Language: .*\$\.(message|error): /,
    because: 'the API speaks English; its form, mails and pages translate',
  },
  {
    pattern: /head: set-cookie: (__Host-)?waitlist=1; .*SameSite=/,
    because: 'SameSite follows from CORS_ORIGINS and https: COOKIE_SAME_SITE was withdrawn',
  },
  {
    pattern:
      /(a chunk of \d+ KB|a body of \d+ KB|413 with requests as its body|20,000 chunks .*|a request behind (chunks of another type|a large (chunk|body))|"more":"x+|Transfer-Encoding: chunked.*) · (head: (connection: |Connection: |Keep-Alive: )|body: )/,
    because: 'a body that is refused is read to its end up to 1 MiB, and the connection goes on',
  },
  {
    pattern: /\[TLS\] \+ OPTIONS \* · head: strict-transport-security/,
    because: 'every routed answer over TLS has the field',
  },
]
