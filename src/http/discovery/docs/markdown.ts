import type { Widget } from '../../../waitlist/ports/challenge.ts'
import { paths } from '../../paths.ts'
import type { OpenapiDocument } from '../openapi.ts'
import { SOLUTION_EXAMPLE } from '../schemas.ts'
import { blocks, code, definitions, escaped, example, idOf, prose } from './commonmark.ts'
import { requestSamples } from './examples.ts'
import { type FormChallenge, formSample } from './form.ts'
import { answerExamples, endpoint, headers, members, rawAnswer } from './reference.ts'
import { type Answer, callsOf } from './shape.ts'

/** The documentation as CommonMark (RFC 7763), made from the OpenAPI document. Each call says all there is to say of it. */
export const docsMarkdown = (api: OpenapiDocument, base: string, widget: Widget | null): string =>
  `${blocks(everything(api, base, widget), '---', colophon(api, base))}\n`

/** The same without what stands at the end. */
export function everything(api: OpenapiDocument, base: string, widget: Widget | null): string {
  const calls = callsOf(api)
  return blocks(
    introduction(api, base),
    start(api, base, widget),
    basics(api, base),
    ...api.tags.map(({ name, description }) =>
      blocks(
        `## ${escaped(name)}`,
        prose(description),
        ...calls.filter(({ operation }) => operation.tags.includes(name)).map(call => endpoint(api, base, call)),
      ),
    ),
  )
}

/** What it is, where it is, and its calls. */
function introduction(api: OpenapiDocument, base: string): string {
  const { title, description } = api.info
  const endpoints = callsOf(api).map(
    ({ method, path, operation: { summary } }) =>
      `- [${code(`${method} ${path}`)} ${escaped(summary)}](#${idOf(summary)})`,
  )
  return blocks(
    `# ${escaped(title)}`,
    prose(description),
    example('Base URL', { language: 'http', code: base }),
    '**Endpoints**',
    endpoints.join('\n'),
  )
}

export const colophon = ({ info }: OpenapiDocument, base: string): string =>
  `Version ${code(info.version)}, ${escaped(info.license.name)} licence. Generated from the [OpenAPI document](${base}${paths.openapi}) of this service.`

/**
 * What the reference does not say: how to begin, and what applies to several calls. Facts come from the OpenAPI document;
 * only what has no place in it is written here, such as what browsers require of a page on another origin.
 */

/** The challenge that must be solved, if any: its solution is the only member besides name and email. */
const challengeOf = (api: OpenapiDocument, widget: Widget | null): FormChallenge | null =>
  widget && {
    widget,
    member: Object.keys(api.components.schemas.SignupRequest.properties)[2]!,
    isOurs: paths.challenge in api.paths,
  }

function start(api: OpenapiDocument, base: string, widget: Widget | null): string {
  const { post } = api.paths[paths.waitlist]
  const request = requestSamples(base, { method: 'POST', path: paths.waitlist, operation: post })
  const sources = (post.parameters ?? []).filter(each => each.in === 'query').map(({ name }) => name)
  const challenge = challengeOf(api, widget)
  return blocks(
    '## Start',
    '### A form for your page',
    'Paste this where you want the form: markup, style and script, complete. It gives hints, shows every answer for what it is, counts down after a `429`, and keeps what was typed when something fails. Its colours are the variables at the top of the style, its thanks are in the `template`; on a page that declares a dark `color-scheme`, it is dark.',
    'If the page is on a different origin from this service, that origin must be [allowed here](#pages-on-other-origins) first. Otherwise the browser hides every answer, and it looks as if the network had failed; the form then leaves a hint in the console.',
    'A page with a Content Security Policy has to allow this service in `connect-src`, and the script and the style in `script-src` and `style-src`.',
    sources.length === 0
      ? undefined
      : `It sends the query of your page along. What says where the visitor came from is kept (${sources.map(code).join(', ')}); everything else in it is ignored.`,
    challenge === null ? undefined : aboutWidget(challenge),
    example('A working form', formSample(base, challenge)),
    '### Quick start',
    'Send a name and an email address; the answer says that the address is on the waitlist. You need no key and no account.',
    'alreadyExisted' in api.components.schemas.SignupResult.properties
      ? 'Send the same again, and the answer says that the address was [already listed](#duplicates).'
      : 'Send the same again, and [nothing changes](#duplicates).',
    challenge === null
      ? 'Every example on this page works as it is: the URLs in it are those of this service.'
      : `A challenge must be solved first: its widget, as in [the form](#a-form-for-your-page), fills in ${code(challenge.member)}. The ${code(SOLUTION_EXAMPLE)} in examples is answered with \`400\`; all else works as it is.`,
    example('Request', ...request),
    answerExamples('200', post.responses[200])[0],
  )
}

function aboutWidget({ widget: { title, element }, isOurs }: FormChallenge): string {
  if (isOurs) {
    return `The ${title} widget solves the challenge while the visitor types, over HTTPS or on \`localhost\`. Put \`altcha.min.js\` beside your page, from \`dist/main\` of the npm package \`altcha\` 3. For a strict policy, take \`examples/landing-altcha\` of the source.`
  }
  const own = element.match(/your-[\w.-]+/g)!.map(code)
  return `It has the ${title} widget: replace ${own.join(' and ')}, and allow in your policy what ${title} asks for.`
}

function basics(api: OpenapiDocument, base: string): string {
  const { responses, summary } = api.paths[paths.waitlist].post
  const { Error: error, SignupResult } = api.components.schemas
  const added: Answer = responses[200]
  const limited: Answer = responses[429]
  const { properties: result } = SignupResult
  const { 'Cache-Control': _, ...limitHeaders } = limited.headers ?? {}
  const { 'Set-Cookie': cookie } = added.headers ?? {}
  const again = 'After a lost connection or a timeout, just send the signup again.'
  const duplicates =
    'alreadyExisted' in result
      ? [
          `${again} Two fields say what happened.`,
          definitions(
            'Fields',
            members(
              api,
              {
                properties: { alreadyExisted: result.alreadyExisted, automationTriggered: result.automationTriggered },
              },
              '',
            ),
          ),
          ...answerExamples('200', added).slice(1, 2),
        ]
      : [`${again} The answer to a known address is that to a new one, and takes as long.`]
  return blocks(
    '## Basics',
    '### Errors',
    `${prose(error.description)} One piece of code can therefore read every refusal.`,
    'Base decisions in your program on the status, and show the sentence to the visitor. The wording may improve over time; the statuses stay.',
    502 in responses
      ? 'An error with the header `Waitlist-Signup: saved` is good news for the visitor: the signup is stored, and only its completion is late.'
      : undefined,
    definitions('Error fields', members(api, error, 'always')),
    rawAnswer('400', responses[400]),
    '### Rate limits',
    `Each client has a quota of attempts, [stated with the signup call](#${idOf(summary)}). Once it is used up, the answer is \`429\` and says how many seconds to wait; after exactly that time, one more attempt is admitted. Documents, such as this page, have a quota of their own${paths.challenge in api.paths ? ', and so have challenges' : ''}; the health report has none.`,
    definitions('Rate limit headers', headers(limitHeaders)),
    rawAnswer('429', limited),
    '### Duplicates',
    ...duplicates,
    ...held(added),
    '### Membership cookie',
    'The cookie says that this browser has signed up, and nothing else. A server on the same host can read it, to greet a visitor instead of asking again; scripts and other hosts cannot. New and known addresses get the same one, so it does not reveal who is on the list.',
    definitions('Header', headers(cookie && { 'Set-Cookie': cookie })),
    rawAnswer('200', added),
    '### Pages on other origins',
    'A browser lets a page call another origin only if that origin agrees (CORS). The operator of this service lists the origins of the landing pages in `CORS_ORIGINS`: scheme, host and port, such as `https://www.example.com`. Other programs, such as your own server, need none of this. The answer to a preflight request repeats the origin if it is allowed.',
    "Requests from such a page need `credentials: 'include'`, or the browser drops the [cookie](#membership-cookie). A page on another site, not just another subdomain, gets the cookie only if the operator has set `COOKIE_SAME_SITE` to `none`.",
    'The body must be sent as `application/json`. A plain HTML form cannot do that, which is what stops other pages from signing up their visitors.',
    example('Is an origin allowed?', {
      language: 'sh',
      code: `curl -i -X OPTIONS ${base}${paths.waitlist} \\\n  -H 'Origin: https://www.example.com' \\\n  -H 'Access-Control-Request-Method: POST'`,
    }),
  )
}

/** Where signups may be held, and an answer tells. */
function held(added: Answer): string[] {
  const [, , answer] = answerExamples('200', added)
  if (answer === undefined) return []
  return [
    '### Held signups',
    'A signup may be held: it is stored, but joins the list only when the operator lets it in. Until then nothing else happens. Show the visitor its sentence, as for any success. Sent again, it gets the same sentence, and is a [duplicate](#duplicates) in all else.',
    answer,
  ]
}
