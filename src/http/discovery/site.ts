import { challengeScript, formScript } from '../../form/script.ts'
import { formIn } from '../messages/form.ts'
import { paths } from '../paths.ts'
import { fieldList, publicFields } from '../response.ts'
import { type Document, document } from '../static.ts'
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
