import { paths } from '../http/paths.ts'

/** RFC 9264 §5; the profile is RFC 9727 §7.3's. */
export const LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

/**
 * The RFC 8631 relations between the API and its descriptions. The catalog, the Link headers and the self-description are all
 * made from these three, so they cannot disagree.
 */
export const descriptions = [
  { rel: 'service-desc', path: paths.openapi, type: 'application/json' },
  { rel: 'service-doc', path: paths.docs, type: 'text/html' },
  { rel: 'status', path: paths.health, type: 'application/json' },
] as const

const link = (base: string, { rel, path, type }: { rel: string; path: string; type: string }): string =>
  `<${base}${path}>; rel="${rel}"; type="${type}"`

/** RFC 8288 §3: the three relations, sent with the API itself. */
export const descriptionLinks = (base: string): string => descriptions.map(each => link(base, each)).join(', ')

/** RFC 9727 §3: a link to the catalog, sent with every other discovery resource. */
export const catalogLink = (base: string): string =>
  link(base, { rel: 'api-catalog', path: paths.catalog, type: 'application/linkset+json' })

/**
 * The API catalog (RFC 9727) as a linkset (RFC 9264 §4.2). The API comes first, since simple readers use only the first entry.
 * The second entry links to the API as the catalog's item (RFC 9727 appendix A.2).
 */
export function catalog(base: string) {
  const targets = descriptions.map(({ rel, path, type }) => [rel, [{ href: base + path, type }]])
  return {
    linkset: [
      { anchor: base + paths.waitlist, ...Object.fromEntries(targets) },
      { anchor: base + paths.catalog, item: [{ href: base + paths.waitlist, type: 'application/json' }] },
    ],
  }
}
