import { paths } from '../../paths.ts'
import type { Installation, OpenapiDocument } from '../openapi.ts'
import { SOLUTION_EXAMPLE } from '../schemas.ts'
import { blocks, code, definitions, escaped, example, idOf, prose } from './commonmark.ts'
import { requestSamples } from './examples.ts'
import { answerExamples, endpoint, headers, members, rawAnswer } from './reference.ts'
import { type Answer, callsOf } from './shape.ts'

/** The documentation as CommonMark (RFC 7763), made from the OpenAPI document. Each call says all there is to say of it. */
export const docsMarkdown = (api: OpenapiDocument, base: string, challenge: Installation['challenge']): string =>
  `${blocks(everything(api, base, challenge), '---', colophon(api, base))}\n`

/** The same without what stands at the end. */
export function everything(api: OpenapiDocument, base: string, challenge: Installation['challenge']): string {
  const calls = callsOf(api)
  return blocks(
    introduction(api, base),
    start(api, base, challenge),
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

function start(api: OpenapiDocument, base: string, challenge: Installation['challenge']): string {
  const { post } = api.paths[paths.waitlist]
  const request = requestSamples(base, { method: 'POST', path: paths.waitlist, operation: post })
  const parameters = post.parameters ?? []
  const sources = parameters.filter(each => each.in === 'query').map(({ name }) => name)
  return blocks(
    '## Start',
    '### A form for your page',
    'Paste this where you want the form. It gives hints, shows every answer for what it is, counts down after a `429`, and keeps a signup on the device of the visitor until this service has answered it: after an outage, without a network, or when the page was closed.',
    'If the page is on a different origin from this service, that origin must be [allowed here](#pages-on-other-origins) first. Otherwise the browser hides every answer, and it looks as if the network had failed; the form then leaves a hint in the console.',
    `A page with a Content Security Policy has to allow this service in \`script-src\` and \`connect-src\`${challenge?.widget ? `, and what ${challenge.title} asks for` : ''}. It needs no inline style and no inline script.`,
    parameters.some(({ name }) => name === 'Accept-Language')
      ? 'It speaks the language of your page (`<html lang="de">`) or, if that says none, the one that the browser asks for.'
      : undefined,
    sources.length === 0
      ? undefined
      : `It sends the query of your page along. What says where the visitor came from is kept (${sources.map(code).join(', ')}); everything else in it is ignored.`,
    challenge === null
      ? undefined
      : challenge.widget === null
        ? 'It solves the challenge while the visitor types, over HTTPS or on `localhost`.'
        : `It has the ${challenge.title} widget, which is loaded when the visitor enters the form, or when a kept signup is sent.`,
    example('A working form', {
      language: 'html',
      code: `<script type="module" src="${base}${paths.form}"></script>\n<waitlist-form></waitlist-form>`,
    }),
    'Its colours, corners and gaps are CSS variables, and any rule of your page outside a layer wins over its own, which are in `@layer waitlist`. A `template` inside the element is what the visitor reads after a success; what else is in it is shown where there is no JavaScript. A `form` of yours inside it, with fields named `name` and `email` and a button, is used as it is; the script enables a button that is `disabled`, so that nothing is sent before.',
    example('In your colours, with your words', {
      language: 'html',
      code: `<style>
  waitlist-form { --waitlist-accent: #1f6b45; --waitlist-on-accent: #fff; --waitlist-error: #b3261e; --waitlist-radius: 1rem; --waitlist-gap: .5rem }
  waitlist-form:not(:defined) { display: block; min-height: 21rem }
</style>
<waitlist-form label="Get early access">
  <p>This form needs JavaScript.</p>
  <template><strong>Thank you, {name}.</strong> <span>{sentence}</span> <span>We will write to {email}.</span></template>
</waitlist-form>`,
    }),
    '### Quick start',
    paths.confirm in api.paths
      ? 'Send a name and an email address. A new address is sent a mail, and is on the waitlist once its reader has confirmed it. You need no key and no account.'
      : 'Send a name and an email address; the answer says that the address is on the waitlist. You need no key and no account.',
    'alreadyExisted' in api.components.schemas.SignupResult.properties
      ? `Send the same again${paths.confirm in api.paths ? ' after that' : ''}, and the answer says that the address was [already listed](#duplicates).`
      : 'Send the same again, and [nothing changes](#duplicates).',
    challenge === null
      ? 'Every example on this page works as it is: the URLs in it are those of this service.'
      : `A challenge must be solved first: [the form](#a-form-for-your-page) does it, and in a form of your own the ${challenge.title} widget fills in ${code(challenge.member)}. The ${code(SOLUTION_EXAMPLE)} in examples is answered with \`400\`; all else works as it is.`,
    example('Request', ...request),
    answerExamples('200', post.responses[200])[0],
  )
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
