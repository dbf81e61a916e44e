import { issueRoute, proving } from '../challenges/route.ts'
import { linkPage } from '../confirm/page.ts'
import { confirmRoutes, unsubscribeRoutes } from '../confirm/routes.ts'
import { discoveryDocuments, prefersMarkdown } from '../discovery/documents.ts'
import { formDocuments } from '../form/documents.ts'
import { healthRoute } from '../health/route.ts'
import type { Context } from '../http/context.ts'
import { notFound } from '../http/errors.ts'
import { paths } from '../http/paths.ts'
import type { Resource, Routes } from '../http/router.ts'
import { serve } from '../http/static.ts'
import { signupRoute } from '../signup/route.ts'

/** Everything that the public server answers. */
export function routesOf(context: Context): Routes {
  const { settings, challenge, links, languages, failed } = context
  const issuesChallenges = challenge?.issue != null
  const documents = discoveryDocuments({ ...settings, ...context, base: context.baseUrl, issuesChallenges })
  const docs = (accept: string | undefined) => (prefersMarkdown(accept) ? documents.markdown : documents.page)
  const form = formDocuments(context)
  const prove = challenge && proving(challenge, context)

  const byPath = new Map<string, Resource>([
    [paths.root, { GET: () => ({ status: 302, headers: documents.redirect, body: null }) }],
    [paths.waitlist, { GET: request => serve(request, documents.description), POST: signupRoute(context, prove) }],
    [paths.health, { GET: healthRoute(context) }],
    [paths.catalog, { GET: request => serve(request, documents.catalog) }],
    [paths.openapi, { GET: request => serve(request, documents.openapi) }],
    [paths.docs, { GET: request => serve(request, docs(request.headers.accept)) }],
    [paths.form, { GET: request => serve(request, form.form) }],
    [paths.formChallenge, { GET: request => serve(request, form.formChallenge) }],
  ])
  if (challenge?.issue != null) byPath.set(paths.challenge, { GET: issueRoute(challenge.issue, context) })
  // Links in mails that were sent always work, whatever the settings are by now.
  const pageSettings = { service: settings.service, site: settings.corsOrigins[0] ?? paths.root }
  const linkParts = { ...pageSettings, links, languages, failed }
  byPath.set(paths.confirm, confirmRoutes(linkParts))
  byPath.set(paths.unsubscribe, unsubscribeRoutes(linkParts))
  return {
    byPath,
    notFound(request) {
      const { accept = '', 'accept-language': acceptLanguage } = request.headers
      // A browser that opens an address names this type first (RFC 9110 §12.5.1).
      const isPerson = request.method === 'GET' && accept.startsWith('text/html')
      return isPerson ? linkPage('notFound', pageSettings, languages.of(acceptLanguage)) : notFound
    },
  }
}
