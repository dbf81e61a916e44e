/**
 * A vendor's release that closes vulnerabilities, of Node.js or of what is built into it. Not each of them concerns every
 * version, or us; nobody who lacks one release should have to judge that.
 */
interface SecurityRelease {
  readonly of: keyof typeof components
  /** The day of the advisory. */
  readonly date: string
  /** The first version of each line of releases that has the fixes, the newest line last. */
  readonly fixed: readonly string[]
  readonly ids: readonly string[]
}

/**
 * How each is called in `process.versions`, how many numbers name a line of its releases, and the day until which its
 * vendor's advisories were read: what came later is not in the list. docs/engineering/releasing.md says who moves these on.
 */
export const components = {
  'Node.js': { key: 'node', line: 1, readUntil: '2026-08-22' },
  OpenSSL: { key: 'openssl', line: 2, readUntil: '2026-08-31' },
  SQLite: { key: 'sqlite', line: 1, readUntil: '2026-08-20' },
} as const

/** Those that a version which `engines` allows may lack, oldest first. */
export const securityReleases: readonly SecurityRelease[] = [
  {
    of: 'SQLite',
    date: '2026-06-03',
    fixed: ['3.53.2'],
    ids: ['CVE-2026-11822', 'CVE-2026-11824'],
  },
  {
    of: 'OpenSSL',
    date: '2026-06-09',
    fixed: ['3.0.21', '3.4.6', '3.5.7', '3.6.3', '4.0.1'],
    ids: [
      ...['CVE-2026-7383', 'CVE-2026-9076', 'CVE-2026-34180', 'CVE-2026-34181', 'CVE-2026-34182', 'CVE-2026-34183'],
      ...['CVE-2026-35188', 'CVE-2026-42764', 'CVE-2026-42765', 'CVE-2026-42766', 'CVE-2026-42767', 'CVE-2026-42768'],
      ...['CVE-2026-42769', 'CVE-2026-42770', 'CVE-2026-42771', 'CVE-2026-45445', 'CVE-2026-45446', 'CVE-2026-45447'],
    ],
  },
  {
    of: 'Node.js',
    date: '2026-06-18',
    fixed: ['22.23.0', '24.17.0', '26.3.1'],
    ids: [
      ...['CVE-2026-48615', 'CVE-2026-48617', 'CVE-2026-48618', 'CVE-2026-48619', 'CVE-2026-48928', 'CVE-2026-48930'],
      ...['CVE-2026-48931', 'CVE-2026-48933', 'CVE-2026-48934', 'CVE-2026-48935', 'CVE-2026-48936', 'CVE-2026-48937'],
    ],
  },
  {
    of: 'Node.js',
    date: '2026-07-29',
    fixed: ['22.23.2', '24.18.1', '26.5.1'],
    ids: [
      ...['CVE-2026-56846', 'CVE-2026-56847', 'CVE-2026-56848', 'CVE-2026-56850', 'CVE-2026-58039', 'CVE-2026-58040'],
      ...['CVE-2026-58041', 'CVE-2026-58042', 'CVE-2026-58043', 'CVE-2026-58044', 'CVE-2026-58045'],
    ],
  },
  {
    of: 'OpenSSL',
    date: '2026-08-25',
    fixed: ['3.5.8', '3.6.4'],
    ids: [
      ...['CVE-2026-14456', 'CVE-2026-14457', 'CVE-2026-18798', 'CVE-2026-54874', 'CVE-2026-54876', 'CVE-2026-63072'],
      ...['CVE-2026-63073', 'CVE-2026-63074', 'CVE-2026-63075', 'CVE-2026-63076', 'CVE-2026-75803'],
    ],
  },
]

/** Of three numbers. What follows them is not compared. */
const numbersOf = (version: string): readonly number[] => version.split('.', 3).map(part => Number.parseInt(part, 10))

/** Below 0: the first version is older. */
export const compareVersions = (a: string, b: string): number => {
  const [one, other] = [numbersOf(a), numbersOf(b)]
  return one.map((part, i) => part - (other[i] ?? 0)).find(difference => difference !== 0) ?? 0
}

/** A line without a fix was no longer supported then, and Node.js counts it as affected; a line that is newer has the fixes. */
function lacks(version: string, { of, fixed }: SecurityRelease): boolean {
  const { line } = components[of]
  const lineOf = (each: string) => each.split('.', line).join('.')
  const fix = fixed.find(each => lineOf(each) === lineOf(version)) ?? fixed.at(-1)!
  return compareVersions(version, fix) < 0
}

/** The security releases that these versions lack (`process.versions`); one that is not named there is not judged. */
export const lacking = (versions: Readonly<Record<string, string | undefined>>): readonly SecurityRelease[] =>
  securityReleases.filter(release => {
    const version = versions[components[release.of].key]
    return version !== undefined && lacks(version, release)
  })

/** At most one sentence, with what to do. */
export function runtimeWarnings(versions: Readonly<Record<string, string | undefined>>): readonly string[] {
  const newest = new Map(lacking(versions).map(({ of, date }) => [of, date]))
  if (newest.size === 0) return []
  const each = [...newest].map(([of, date]) => `${of} ${versions[components[of].key]} those of ${date}`)
  return [`This Node.js lacks security fixes: ${each.join(', ')}. Update it to the newest release of a supported line.`]
}

const { node_shared_openssl: openssl, node_shared_sqlite: sqlite } = process.config.variables as Record<string, unknown>

/** The versions here. A library that the system shares may have its fixes without the vendor's number. */
export const bundled: Readonly<Record<string, string | undefined>> = {
  node: process.versions.node,
  ...(openssl !== true && { openssl: process.versions.openssl }),
  ...(sqlite !== true && { sqlite: process.versions.sqlite }),
}
