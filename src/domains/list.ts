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
  const keys = keySet(text.length)
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
    size: keys.size(),
    hasEvery,
    has(domain) {
      if (hasEvery || keys.has(domain)) return true
      for (let dot = domain.indexOf('.'); dot !== -1; dot = domain.indexOf('.', dot + 1)) {
        if (keys.has(domain, dot)) return true
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

/**
 * A set of short ASCII texts, of `characters` in all: a million domains take about 30 MB, a `Set` of them more than twice
 * that. The texts lie one after the other, each with its length before it; a table of places is probed linearly.
 */
function keySet(characters: number) {
  let bytes = new Uint8Array(Math.min(characters, 1_000) + 256)
  let table = new Uint32Array(1_024)
  let used = 1 // 0 in the table: nothing
  let size = 0

  function find(text: string, from: number): number {
    const length = text.length - from
    let at = hashOf(text, from) & (table.length - 1)
    for (; table[at] !== 0; at = (at + 1) & (table.length - 1)) {
      const place = table[at]!
      if (bytes[place] !== length) continue
      let i = 0
      while (i < length && bytes[place + 1 + i] === text.charCodeAt(from + i)) i++
      if (i === length) return at
    }
    return at
  }

  /** Twice as large, with every place where it belongs now. */
  function grow(): void {
    const places = table
    table = new Uint32Array(2 * places.length)
    for (const place of places) {
      if (place === 0) continue
      const text = String.fromCharCode(...bytes.subarray(place + 1, place + 1 + bytes[place]!))
      table[find(text, 0)] = place
    }
  }

  return {
    size: () => size,
    has: (text: string, from = 0): boolean => table[find(text, from)] !== 0,
    add(text: string): void {
      const at = find(text, 0)
      if (table[at] !== 0) return
      if (used + 1 + text.length > bytes.length) {
        const more = new Uint8Array(2 * bytes.length)
        more.set(bytes)
        bytes = more
      }
      table[at] = used
      bytes[used++] = text.length
      for (let i = 0; i < text.length; i++) bytes[used++] = text.charCodeAt(i)
      if (2 * ++size > table.length) grow()
    },
  }
}

/** FNV-1a, 32 bits. */
function hashOf(text: string, from: number): number {
  let hash = 0x811c9dc5
  for (let i = from; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}
