import { paths } from '../../paths.ts'
import type { OpenapiDocument } from '../openapi.ts'
import { answerCards, rawAnswer } from './answers.ts'
import { type Block, type Group, idOf, type Section } from './content.ts'
import { formSample, requestSamples } from './examples.ts'
import { fieldRows, memberRows } from './members.ts'
import type { Answer, Call } from './shape.ts'

/**
 * What a reference does not say by itself: how to begin, and what concerns many calls. Facts come from the OpenAPI
 * document; written here is only what has no place there, such as what a browser asks of a page on another origin.
 */

const prose = (text: string): Block => ({ is: 'prose', text })

const section = (title: string, text: readonly Block[], beside: readonly Block[]): Section => ({
  id: idOf(title),
  title,
  parts: [{ text, beside }],
})

export function start(api: OpenapiDocument, base: string): Group {
  const { post } = api.paths[paths.waitlist]
  const call: Call = { method: 'POST', path: paths.waitlist, operation: post }
  const form = formSample(base + paths.waitlist, api.components.schemas.SignupRequest)
  const [added] = answerCards('200', post.responses[200])
  return {
    id: 'start',
    title: 'Start',
    sections: [
      section(
        'Quick start',
        [
          prose(
            'Send a name and an email address; the answer tells that the address is on the waitlist. No key and no account are needed.\n\n' +
              'Send the same once more, and the answer tells that the address was [known before](#duplicates).\n\n' +
              'All examples here work as they are: the address in them is the one of this service.',
          ),
        ],
        [
          { is: 'code', title: 'Request', samples: requestSamples(base, call) },
          ...(added === undefined ? [] : [added]),
        ],
      ),
      section(
        'A form for your page',
        [
          prose(
            'Paste this where the form is to stand. It sends what the visitor typed and shows the sentence that comes back: the `message` of a success or the `error` of a refusal.\n\n' +
              'Is the page on another origin than this service? Then its origin must be [allowed here](#pages-on-other-origins) first.\n\n' +
              'A page with a Content Security Policy has to allow this service in `connect-src`, and the script in `script-src`.',
          ),
        ],
        [{ is: 'code', title: 'A working form', samples: [form] }],
      ),
    ],
  }
}

export function basics(api: OpenapiDocument, base: string): Group {
  const { responses, summary } = api.paths[paths.waitlist].post
  const { Error: error, SignupResult } = api.components.schemas
  const added: Answer = responses[200]
  const limited: Answer = responses[429]
  const { alreadyExisted, automationTriggered } = SignupResult.properties
  const { 'Cache-Control': _, ...limitFields } = limited.headers ?? {}
  const { 'Set-Cookie': cookie } = added.headers ?? {}
  return {
    id: 'basics',
    title: 'Basics',
    sections: [
      section(
        'Errors',
        [
          prose(
            `A refusal always looks the same, so one piece of code can read them all. ${error.description}\n\nLet the status decide what your program does, and show the sentence to the visitor. Sentences may be worded better one day; statuses stay.`,
          ),
          { is: 'rows', title: 'Error fields', rows: memberRows(api, error, 'always') },
        ],
        [rawAnswer('400', responses[400])],
      ),
      section(
        'Rate limits',
        [
          prose(
            `Every client has a quota of attempts, told [where signups are described](#${idOf(summary)}). When it is used up the answer is \`429\`, which says how many seconds to wait: after exactly that time an attempt is counted again.`,
          ),
          { is: 'rows', title: 'Rate limit headers', rows: fieldRows(limitFields) },
        ],
        [rawAnswer('429', limited)],
      ),
      section(
        'Duplicates',
        [
          prose('After a lost connection or a timeout, just send the signup again. Two fields tell what happened.'),
          {
            is: 'rows',
            title: 'Fields',
            rows: memberRows(api, { properties: { alreadyExisted, automationTriggered } }, ''),
          },
        ],
        answerCards('200', added).slice(1),
      ),
      section(
        'Membership cookie',
        [
          prose('New and known addresses get the same cookie, so it gives nobody away.'),
          { is: 'rows', title: 'Header', rows: fieldRows(cookie === undefined ? {} : { 'Set-Cookie': cookie }) },
        ],
        [rawAnswer('200', added)],
      ),
      section(
        'Pages on other origins',
        [
          prose(
            'A browser lets a page talk to another origin only when that origin agrees (CORS). The operator of this service lists the origins of the landing pages in `CORS_ORIGINS`: scheme, host and port, such as `https://www.example.com`. Other programs, such as your own server, need nothing of this. The answer to a preflight repeats an origin that is allowed.\n\n' +
              `Requests of such a page carry \`credentials: 'include'\`, or the browser drops the [cookie](#membership-cookie). A page on another site, not just another subdomain, gets the cookie only when the operator has set \`COOKIE_SAME_SITE\` to \`none\`.\n\n` +
              'The body has to be sent as `application/json`. A plain HTML form cannot do that, which is what keeps other pages from signing up their visitors.',
          ),
        ],
        [
          {
            is: 'code',
            title: 'Is an origin allowed?',
            samples: [
              {
                title: 'curl',
                language: 'sh',
                code: `curl -i -X OPTIONS ${base}${paths.waitlist} \\\n  -H 'Origin: https://www.example.com' \\\n  -H 'Access-Control-Request-Method: POST'`,
              },
            ],
          },
        ],
      ),
    ],
  }
}
