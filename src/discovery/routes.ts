import type { IncomingMessage } from 'node:http'
import { paths } from '../http/paths.ts'
import { publicHeaders } from '../http/response.ts'
import type { Resource, Route } from '../http/router.ts'
import { staticRoute } from '../http/static.ts'
import { catalog, catalogLink, descriptionLinks, LINKSET } from './catalog.ts'
import { type Installation, openapi, selfDescription } from './openapi.ts'

/** The documents about this installation. Only its configuration changes them. The large ones are made when first requested. */
export function discoveryRoutes(installation: Installation) {
  const { base } = installation
  const headers = { ...publicHeaders, 'cache-control': 'public, max-age=3600', link: catalogLink(base) }
  const redirect = {
    ...publicHeaders,
    'cache-control': 'no-store',
    'content-length': '0',
    location: base + paths.docs,
    link: `${catalogLink(base)}, ${descriptionLinks(base)}`,
  }

  async function docs() {
    const { docsHeaders, docsMarkdown, docsPage } = await import('./docs.ts')
    const api = openapi(installation)
    const text = docsMarkdown(api, base)
    const negotiated = { ...headers, vary: 'Accept' }
    const markdown = staticRoute('text/markdown; charset=utf-8', text, negotiated)
    const page = staticRoute('text/html; charset=utf-8', docsPage(text, api, base), { ...negotiated, ...docsHeaders })
    return (request: IncomingMessage) => (prefersMarkdown(request.headers.accept) ? markdown : page)(request)
  }

  return {
    root: { GET: () => ({ status: 302, headers: redirect, body: null }) },
    description: staticRoute('application/json', JSON.stringify(selfDescription(installation)), {
      ...publicHeaders,
      'cache-control': 'public, max-age=300',
      link: descriptionLinks(base),
    }),
    catalog: {
      GET: staticRoute(LINKSET, JSON.stringify(catalog(base)), {
        ...headers,
        link: `${catalogLink(base)}, <${base}${paths.waitlist}>; rel="item"`,
      }),
    },
    openapi: onFirstRequest(async () =>
      staticRoute('application/json', JSON.stringify(openapi(installation)), headers),
    ),
    docs: onFirstRequest(docs),
  }
}

function onFirstRequest(make: () => Promise<(request: IncomingMessage) => ReturnType<Route>>): Resource {
  let made: ReturnType<typeof make> | undefined
  return {
    async GET(request) {
      made ??= make()
      return (await made)(request)
    },
  }
}

/**
 * Whether a client wants Markdown: only if `Accept` names `text/markdown` with a higher quality than it gives to `text/html`
 * (RFC 9110 §12.5.1). All others get the page, including clients that accept anything.
 */
function prefersMarkdown(accept = ''): boolean {
  const qualities = new Map<string, number>()
  for (const range of accept.toLowerCase().split(',')) {
    const [, type, quality = '1'] = /^\s*([^\s;]+)\s*(?:;\s*q=([01][\d.]*)\s*)?$/.exec(range) ?? []
    if (type !== undefined) qualities.set(type, Number(quality))
  }
  const html = qualities.get('text/html') ?? qualities.get('text/*') ?? qualities.get('*/*') ?? 0
  return (qualities.get('text/markdown') ?? 0) > html
}
