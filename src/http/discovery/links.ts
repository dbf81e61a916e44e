import { paths } from '../paths.ts'

/** RFC 9264 §5; the profile is RFC 9727 §7.3's. */
export const LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"'

/**
 * The relations of RFC 8631 between the API and its descriptions. The catalog, the Link fields and the self-description
 * all state these three, so that they cannot disagree.
 */
export const descriptions = [
  { rel: 'service-desc', path: paths.openapi, type: 'application/json' },
  { rel: 'service-doc', path: paths.docs, type: 'text/html' },
  { rel: 'status', path: paths.health, type: 'application/json' },
] as const

const link = (base: string, { rel, path, type }: { rel: string; path: string; type: string }): string =>
  `<${base}${path}>; rel="${rel}"; type="${type}"`

/** RFC 8288 §3: the three relations, on the API itself. */
export const descriptionLinks = (base: string): string => descriptions.map(each => link(base, each)).join(', ')

/** RFC 9727 §3: where the catalog is, on every other discovery resource. */
export const catalogLink = (base: string): string =>
  link(base, { rel: 'api-catalog', path: paths.catalog, type: 'application/linkset+json' })
