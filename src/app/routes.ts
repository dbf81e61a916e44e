import { issueRoute, proving } from '../challenges/route.ts'
import { linkPage } from '../confirm/page.ts'
import { linkRoutes } from '../confirm/routes.ts'
import { discoveryRoutes } from '../discovery/routes.ts'
import { formRoutes } from '../form/routes.ts'
import { healthRoute } from '../health/route.ts'
import type { Context } from '../http/context.ts'
import { notFound } from '../http/errors.ts'
import { paths } from '../http/paths.ts'
import type { Resource, Routes } from '../http/router.ts'
import { signupRoute } from '../signup/route.ts'

/** Everything that the public server answers. */
export function routesOf(context: Context): Routes {
  const { settings, challenge, links, languages, failed } = context
  const issuesChallenges = challenge?.issue != null
  const discovery = discoveryRoutes({ ...settings, ...context, base: context.baseUrl, issuesChallenges })
  const form = formRoutes(context)
  const prove = challenge && proving(challenge, context)
  const pageSettings = { service: settings.service, site: settings.corsOrigins[0] ?? paths.root }
  const linkParts = { ...pageSettings, links, languages, failed }

  const byPath = new Map<string, Resource>([
    [paths.root, discovery.root],
    [paths.waitlist, { GET: discovery.description, POST: signupRoute(context, prove) }],
    [paths.health, { GET: healthRoute(context) }],
    [paths.catalog, discovery.catalog],
    [paths.openapi, discovery.openapi],
    [paths.docs, discovery.docs],
    [paths.form, form.form],
    [paths.formChallenge, form.formChallenge],
    // Links in mails that were sent always work, whatever the settings are by now.
    [paths.confirm, linkRoutes('confirm', linkParts)],
    [paths.unsubscribe, linkRoutes('unsubscribe', linkParts)],
  ])
  if (challenge?.issue != null) byPath.set(paths.challenge, { GET: issueRoute(challenge.issue, context) })
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
