import { setImmediate as turn } from 'node:timers/promises'
import { domainToASCII } from 'node:url'

/** Email domains. `example.com` is that domain alone, `*.example.com` all below it, `*` every domain. */
export interface DomainList {
  /** How many there are. */
  readonly size: number
  /** Whether `*` is one of them. */
  readonly hasEvery: boolean
  /** Whether a domain, in lower case and as A-labels, is one of them. */
  has(domain: string): boolean
}

/** Why a text is no list. `line` counts from 1. */
export interface Unreadable {
  readonly line: number
  readonly why: string
}

/** Lines that are read in one turn of the event loop: some milliseconds. */
const SLICE = 10_000

/** RFC 1035 §2.3.4, as text. */
const LONGEST = 253
const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const DOMAIN = new RegExp(`^(?:${LABEL}\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

/**
 * Reads a list: a domain a line, upper or lower case, as A-labels or as people write it, with or without a dot at its
 * end; `#` begins a comment. It goes in slices, so that a million lines hold up nobody.
 */
export async function readDomains(text: string): Promise<DomainList | Unreadable> {
  const keys = new Set<string>()
  let number = 0
  for (let from = text.startsWith('\uFEFF') ? 1 : 0; from < text.length; ) {
    const newline = text.indexOf('\n', from)
    const end = newline === -1 ? text.length : newline
    const written = text.slice(from, end)
    const entry = written.split('#', 1)[0]!.trim().toLowerCase()
    from = end + 1
    number++
    if (entry !== '') {
      const key = keyOf(entry)
      if (key === undefined) return { line: number, why: 'not a domain such as example.com or *.example.com' }
      keys.add(key)
    }
    if (number % SLICE === 0) await turn()
  }
  const hasEvery = keys.has(EVERY)
  return {
    size: keys.size,
    hasEvery,
    has(domain) {
      if (hasEvery || keys.has(domain)) return true
      for (let dot = domain.indexOf('.'); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
        if (keys.has(domain.slice(dot))) return true
      }
      return false
    },
  }
}

const EVERY = '*'

/** What is looked up: `example.com`, `.example.com` for all below it, or `*`. Undefined: it is none of these. */
function keyOf(entry: string): string | undefined {
  if (entry === EVERY) return EVERY
  const below = entry.startsWith('*.')
  const written = below ? entry.slice(2) : entry
  // IDNA of a name without other characters would only cost time.
  const ascii = /^[\x21-\x7E]*$/.test(written) ? written : domainToASCII(written)
  const domain = ascii.endsWith('.') ? ascii.slice(0, -1) : ascii
  if (domain.length > LONGEST || !DOMAIN.test(domain)) return undefined
  return below ? `.${domain}` : domain
}

/** Files with email domains. */
export interface DomainFiles {
  readonly blocked: string
  /** What is in it is accepted, whatever the other one says. Null: there are no exceptions. */
  readonly allowed: string | null
}
