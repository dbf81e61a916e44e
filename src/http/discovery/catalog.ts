import { paths } from '../paths.ts'
import { descriptions } from './links.ts'
import type { Linkset } from './schemas.ts'

/**
 * The API catalog (RFC 9727) as a linkset (RFC 9264 §4.2). The API comes first, since simple readers use only the first
 * entry. The second entry links to the API as the catalog's item (RFC 9727 appendix A.2).
 */
export function catalog(base: string): Linkset {
  const [desc, doc, status] = descriptions.map(({ path, type }) => [{ href: base + path, type }])
  return {
    linkset: [
      { anchor: base + paths.waitlist, 'service-desc': desc!, 'service-doc': doc!, status: status! },
      { anchor: base + paths.catalog, item: [{ href: base + paths.waitlist, type: 'application/json' }] },
    ],
  }
}
