import { paths } from '../http/paths.ts'
import { publicHeaders } from '../http/response.ts'
import { document } from '../http/static.ts'
import { catalog, catalogLink, descriptionLinks, LINKSET } from './catalog.ts'
import { docsHeaders, docsMarkdown, docsPage } from './docs.ts'
import { type Installation, openapi, selfDescription } from './openapi.ts'

/** The documents of an installation. Only its configuration changes them. */
export function discoveryDocuments(installation: Installation) {
  const { base } = installation
  const api = openapi(installation)
  const headers = { ...publicHeaders, 'cache-control': 'public, max-age=3600', link: catalogLink(base) }
  const docs = { ...headers, vary: 'Accept' }
  const markdown = docsMarkdown(api, base)
  return {
    description: document('application/json', JSON.stringify(selfDescription(installation)), {
      ...publicHeaders,
      'cache-control': 'public, max-age=300',
      link: descriptionLinks(base),
    }),
    catalog: document(LINKSET, JSON.stringify(catalog(base)), {
      ...headers,
      link: `${catalogLink(base)}, <${base}${paths.waitlist}>; rel="item"`,
    }),
    openapi: document('application/json', JSON.stringify(api), headers),
    markdown: document('text/markdown; charset=utf-8', markdown, docs),
    page: document('text/html; charset=utf-8', docsPage(markdown, api, base), { ...docs, ...docsHeaders }),
    /** Of the answer to `/`, which redirects to the documentation. */
    redirect: {
      ...publicHeaders,
      'cache-control': 'no-store',
      'content-length': '0',
      location: base + paths.docs,
      link: `${catalogLink(base)}, ${descriptionLinks(base)}`,
    },
  }
}

/**
 * Whether a client wants Markdown: only if `Accept` names `text/markdown` with a higher quality than it gives to `text/html`
 * (RFC 9110 §12.5.1). All others get the page, including clients that accept anything.
 */
export function prefersMarkdown(accept = ''): boolean {
  const ranges = accept.split(',').map(range => {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    const q = parameters.find(parameter => parameter.startsWith('q='))
    const quality = q === undefined ? 1 : Number(q.slice(2))
    return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 }
  })
  const quality = (...types: readonly string[]) =>
    types.map(type => ranges.find(range => range.type === type)?.quality).find(found => found !== undefined) ?? 0
  return quality('text/markdown') > quality('text/html', 'text/*', '*/*')
}
