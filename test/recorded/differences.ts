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
      /the document, .*(\.get\.responses\.429|429|`?Cache-Control.*\(500, 4XX|quota of 600 documents|too many requests, please|until the client may fetch|Example: \S*1\b)/,
    because: 'the quota of documents was withdrawn, and with it their 429',
  },
  {
    pattern:
      /CONFIRM=mail.* the document, .*(link.* used too often|Headers of other responses|until the link may be used)/,
    because: 'the quota of documents also counted who came to /confirm and /unsubscribe without a valid link',
  },
  {
    pattern:
      /^\[a domain blocked\] .*"a@(sub|good)\.blocked\.example"|^\[a domain blocked, .*"a@sub\.blocked\.example"/,
    because: 'a domain that is blocked covers its subdomains',
  },
  {
    pattern:
      /- the document, text\/\w+ · body: (.*(form-[0-9a-f]{16}\.js|pin it by its hash|Pinned)|```(html)?$|<pre data-language="html">|<div class="(part|text|beside|card code)">|<b>&lt;\/script<|<b>>)/,
    because: 'the pinned name of the form was withdrawn',
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
]
