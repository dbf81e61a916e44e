import { catalog } from './catalog.ts'
import { docsMarkdown } from './docs/markdown.ts'
import { prefersMarkdown } from './docs/negotiate.ts'
import { docsPage } from './docs/page.ts'
import { type Document, document } from './document.ts'
import { publicFields } from './fields.ts'
import { openapi } from './openapi.ts'
import type { Installation } from './openapi-answers.ts'
import { catalogLink, descriptionLinks, LINKSET, paths } from './paths.ts'
import type { SelfDescription } from './schemas.ts'

/** Every document of one installation, made once: they change with the configuration only. */
export interface Site {
  readonly description: Document
  readonly catalog: Document
  readonly openapi: Document
  /** The documentation in the form that this `Accept` value prefers. */
  docs(accept: string | undefined): Document
  /** The fields of the redirect at `/`. */
  readonly redirect: Readonly<Record<string, string>>
}

const HOUR = 'public, max-age=3600'

export function site(installation: Installation): Site {
  const { base, service, description } = installation
  const api = openapi(installation)
  const discovery = { ...publicFields, 'cache-control': HOUR, link: catalogLink(base) }
  const page = docsPage(api, base)
  const html = document(page.html, {
    ...discovery,
    ...page.securityFields,
    'content-type': 'text/html; charset=utf-8',
    vary: 'Accept',
  })
  const markdown = document(docsMarkdown(api, base), {
    ...discovery,
    'content-type': 'text/markdown; charset=utf-8',
    vary: 'Accept',
  })
  const self: SelfDescription = {
    name: service,
    description,
    methods: ['GET', 'POST'],
    'service-desc': base + paths.openapi,
    'service-doc': base + paths.docs,
    status: base + paths.health,
  }

  return {
    description: document(JSON.stringify(self), {
      ...publicFields,
      'content-type': 'application/json',
      'cache-control': 'public, max-age=300',
      link: descriptionLinks(base),
    }),
    catalog: document(JSON.stringify(catalog(base)), {
      ...discovery,
      'content-type': LINKSET,
      link: `${catalogLink(base)}, <${base}${paths.waitlist}>; rel="item"`,
    }),
    openapi: document(JSON.stringify(api), { ...discovery, 'content-type': 'application/json' }),
    docs: accept => (prefersMarkdown(accept) ? markdown : html),
    redirect: {
      ...publicFields,
      'cache-control': 'no-store',
      'content-length': '0',
      location: base + paths.docs,
      link: `${catalogLink(base)}, ${descriptionLinks(base)}`,
    },
  }
}
