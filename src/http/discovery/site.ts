import { type Answer, fieldList } from '../answer.ts'
import { publicFields } from '../headers.ts'
import { paths } from '../paths.ts'
import { catalog } from './catalog.ts'
import { docsMarkdown } from './docs/markdown.ts'
import { prefersMarkdown } from './docs/negotiate.ts'
import { docsPage } from './docs/page.ts'
import { type Document, document } from './document.ts'
import { catalogLink, descriptionLinks, LINKSET } from './links.ts'
import { type Installation, openapi } from './openapi.ts'
import type { SelfDescription } from './schemas.ts'

/** Every document of one installation, made once: they change with the configuration only. */
export interface Site {
  readonly description: Document
  readonly catalog: Document
  readonly openapi: Document
  /** The documentation in the form that this `Accept` value prefers. */
  docs(accept: string | undefined): Document
  /** What `/` answers: see the documentation. */
  readonly redirect: Answer
}

const HOUR = 'public, max-age=3600'

export function site(installation: Installation): Site {
  const { base, service, description } = installation
  const api = openapi(installation)
  const discovery = { ...publicFields, 'cache-control': HOUR, link: catalogLink(base) }
  const page = docsPage(api, base)
  const negotiated = { ...discovery, vary: 'Accept' }
  const html = document('text/html; charset=utf-8', page.html, { ...negotiated, ...page.securityFields })
  const markdown = document('text/markdown; charset=utf-8', docsMarkdown(api, base), negotiated)
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
    docs: accept => (prefersMarkdown(accept) ? markdown : html),
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
