import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { challengeScript, formScript } from '../../form/script.ts'
import { formIn } from '../messages/form.ts'
import { paths } from '../paths.ts'
import { type Answer, contentFields, fieldList, publicFields, readableAnywhere, withFields } from '../wire/answer.ts'
import { preconditionFailed, refuse } from '../wire/refusals.ts'
import { catalog, catalogLink, descriptionLinks, LINKSET } from './catalog.ts'
import { docsMarkdown } from './docs/markdown.ts'
import { docsPage } from './docs/page.ts'
import { descriptionOf, type Installation, type OpenapiDocument, openapi } from './openapi.ts'

const HOUR = 'public, max-age=3600'
/** A page that is opened again within a day has the form at once, even if the service is away (RFC 5861 §3). */
const SCRIPT = 'public, max-age=300, stale-while-revalidate=86400'
const JAVASCRIPT = 'text/javascript; charset=utf-8'

export type Site = ReturnType<typeof site>

/** Every document of one installation. Each is made once, since only the configuration changes them. */
export function site(installation: Installation) {
  const { base, challenge, languages } = installation
  const api = openapi(installation)
  const discovery = { ...publicFields, 'cache-control': HOUR, link: catalogLink(base) }
  let made: ReturnType<typeof documentation> | undefined

  return {
    description: document('application/json', JSON.stringify(descriptionOf(installation)), {
      ...publicFields,
      'cache-control': 'public, max-age=300',
      link: descriptionLinks(base),
    }),
    catalog: document(LINKSET, JSON.stringify(catalog(base)), {
      ...discovery,
      link: `${catalogLink(base)}, <${base}${paths.waitlist}>; rel="item"`,
    }),
    openapi: document('application/json', JSON.stringify(api), discovery),
    /** What the form asks of the service: the challenge to solve, and its sentences. */
    formSettings: new Map(
      languages.all.map(language => {
        const { words, fields } = formIn(language)
        const text = JSON.stringify({
          challenge: challenge && { member: challenge.member, widget: challenge.widget },
          ...words,
        })
        const kept = { ...publicFields, 'cache-control': 'public, max-age=300', ...fields }
        return [language, document('application/json', text, kept)]
      }),
    ),
    form: document(JAVASCRIPT, formScript, { ...publicFields, 'cache-control': SCRIPT }),
    formChallenge: document(JAVASCRIPT, challengeScript, { ...publicFields, 'cache-control': SCRIPT }),
    /** The documentation in the form that this `Accept` value prefers; made on the first request. */
    docs(accept: string | undefined): Document {
      made ??= documentation(api, base, challenge, { ...discovery, vary: 'Accept' })
      return prefersMarkdown(accept) ? made.markdown : made.html
    },
    /** The answer to `/`. */
    redirect: {
      status: 302,
      body: null,
      fields: fieldList({
        ...publicFields,
        'cache-control': 'no-store',
        'content-length': '0',
        location: base + paths.docs,
        link: `${catalogLink(base)}, ${descriptionLinks(base)}`,
      }),
    },
  }
}

/** Both forms of the documentation. */
function documentation(
  api: OpenapiDocument,
  base: string,
  challenge: Installation['challenge'],
  fields: Record<string, string>,
) {
  const markdown = docsMarkdown(api, base, challenge)
  const page = docsPage(api, base, challenge)
  return {
    markdown: document('text/markdown; charset=utf-8', markdown, fields),
    html: document('text/html; charset=utf-8', page.html, { ...fields, ...page.securityFields }),
  }
}

/**
 * Whether a client wants Markdown: only if `Accept` names `text/markdown` with a higher quality than it gives to
 * `text/html` (RFC 9110 §12.5.1). All others get the page, including clients that accept anything.
 */
function prefersMarkdown(accept: string | undefined): boolean {
  if (accept === undefined || !/text\/markdown/i.test(accept)) return false
  const ranges = accept.split(',').map(readRange)
  const quality = (type: string) => ranges.find(range => range.type === type)?.quality
  const html = quality('text/html') ?? quality('text/*') ?? quality('*/*') ?? 0
  const markdown = quality('text/markdown') ?? 0
  return markdown > html
}

function readRange(text: string): { type: string; quality: number } {
  const [type = '', ...parameters] = text.split(';').map(part => part.trim().toLowerCase())
  const q = parameters.find(parameter => parameter.startsWith('q='))
  const quality = q === undefined ? 1 : Number(q.slice(2))
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
}

/** Bytes that do not change while the process runs, with their answers. */
interface Document {
  readonly etag: string
  readonly whole: Answer
  /** RFC 9110 §15.4.5: only the fields that a cache needs, and no content. */
  readonly unchanged: Answer
}

/** Makes a document. The entity tag is strong: a hash of the bytes (RFC 9110 §8.8.3). */
function document(type: string, text: string, fields: Readonly<Record<string, string>>): Document {
  const body = Buffer.from(text)
  const etag = `"${createHash('sha256').update(body).digest('base64url')}"`
  const list = fieldList({ ...fields, etag })
  return {
    etag,
    whole: { status: 200, fields: list.concat(contentFields(type, body.length)), body },
    unchanged: { status: 304, fields: list, body: null },
  }
}

/**
 * Serves a document to GET and HEAD, with the preconditions of RFC 9110 §13.2.2. There is no modification date, so
 * those about dates do not apply; ranges are ignored (§14.2).
 */
export function serve({ headers }: IncomingMessage, { etag, whole, unchanged }: Document): Answer {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  // §13.1.1: strong comparison, so a weak tag never matches.
  if (ifMatch !== undefined && !names(ifMatch, etag)) return withFields(refuse(preconditionFailed), readableAnywhere)
  if (ifNoneMatch !== undefined && names(ifNoneMatch.replaceAll('W/"', '"'), etag)) return unchanged
  return whole
}

/** Whether a list of entity tags contains this one. A tag may hold commas, but ours do not (base64url). */
function names(list: string, etag: string): boolean {
  return list.trim() === '*' || list.split(',').some(item => item.trim() === etag)
}
