import type { Widget } from '../../waitlist/ports/challenge.ts'
import { paths } from '../paths.ts'
import { type Answer, fieldList, publicFields } from '../wire/answer.ts'
import { catalog, catalogLink, descriptionLinks, LINKSET } from './catalog.ts'
import { type Document, document } from './document.ts'
import { type Installation, type OpenapiDocument, openapi } from './openapi.ts'
import type { SelfDescription } from './schemas.ts'

/** Every document of one installation. Each is made once, since only the configuration changes them. */
export interface Site {
  readonly description: Document
  readonly catalog: Document
  readonly openapi: Document
  /** The documentation in the form that this `Accept` value prefers; made on the first request. */
  docs(accept: string | undefined): Promise<Document>
  /** The answer to `/`: a redirect to the documentation. */
  readonly redirect: Answer
}

const HOUR = 'public, max-age=3600'

export function site(installation: Installation): Site {
  const { base, service, description } = installation
  const widget = installation.challenge?.widget ?? null
  const api = openapi(installation)
  const discovery = { ...publicFields, 'cache-control': HOUR, link: catalogLink(base) }
  let made: Promise<Documentation> | undefined
  const self: SelfDescription = {
    name: service,
    description,
    methods: ['GET', 'POST'],
    'service-desc': base + paths.openapi,
    'service-doc': base + paths.docs,
    status: base + paths.health,
  }

  return {
    description: document('application/json', JSON.stringify(self), {
      ...publicFields,
      'cache-control': 'public, max-age=300',
      link: descriptionLinks(base),
    }),
    catalog: document(LINKSET, JSON.stringify(catalog(base)), {
      ...discovery,
      link: `${catalogLink(base)}, <${base}${paths.waitlist}>; rel="item"`,
    }),
    openapi: document('application/json', JSON.stringify(api), discovery),
    async docs(accept) {
      made ??= documentation(api, base, widget, { ...discovery, vary: 'Accept' }).catch(error => {
        made = undefined // a file could not be read, perhaps for lack of descriptors: the next request tries again
        throw error
      })
      const { markdown, html } = await made
      return prefersMarkdown(accept) ? markdown : html
    },
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

interface Documentation {
  readonly markdown: Document
  readonly html: Document
}

/** Both forms of the documentation. Its code is loaded on demand, so that it does not delay the start. */
async function documentation(
  api: OpenapiDocument,
  base: string,
  widget: Widget | null,
  fields: Record<string, string>,
): Promise<Documentation> {
  const [{ docsMarkdown }, { docsPage }] = await Promise.all([import('./docs/markdown.ts'), import('./docs/page.ts')])
  const markdown = docsMarkdown(api, base, widget)
  const page = docsPage(api, base, widget)
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
