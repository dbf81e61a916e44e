/** The challenge of a form. `form.js` loads this file where its service asks for one. */

/**
 * What the service says of it. `widget` null: it makes the challenges itself, and they are solved here.
 * @typedef {{ readonly member: string, readonly widget: Widget | null }} Description
 *
 * The widget of a vendor. `api`: its object in the page.
 * @typedef {{ readonly script: string, readonly isModule: boolean, readonly tag: string, readonly attributes: Readonly<Record<string, string>>, readonly api: string | null }} Widget
 *
 * @typedef {ReturnType<typeof challenged>} Challenge
 */

/** @type {(hex: string) => Uint8Array<ArrayBuffer>} */
const bytesOf = hex => Uint8Array.from(hex.match(/../g) ?? [], pair => Number.parseInt(pair, 16))

/**
 * Solves a challenge that the service makes (ALTCHA, protocol 2): finds the number from which a key was derived.
 * @param {string} url
 * @returns {Promise<{ text: string, expires: number }>} `expires`: milliseconds since 1970
 */
async function solved(url) {
  const challenge = await (await fetch(url, { signal: AbortSignal.timeout(20_000) })).json()
  const { nonce, salt, cost, data, keyLength, keyPrefix, expiresAt } = challenge.parameters
  /** @type {(counter: number) => Promise<string>} */
  const derive = async counter => {
    const guess = bytesOf(`${nonce}${counter.toString(16).padStart(8, '0')}`)
    const key = await crypto.subtle.importKey('raw', guess, 'PBKDF2', false, ['deriveBits'])
    const how = { name: 'PBKDF2', hash: 'SHA-256', salt: bytesOf(salt), iterations: cost }
    const bits = await crypto.subtle.deriveBits(how, key, 8 * keyLength)
    return Array.from(new Uint8Array(bits), byte => byte.toString(16).padStart(2, '0')).join('')
  }
  // Several at once: browsers derive in threads of their own.
  for (let first = 0; first <= data.range; first += 16) {
    const keys = await Promise.all(Array.from({ length: 16 }, (_, index) => derive(first + index)))
    const found = keys.findIndex(key => key.startsWith(keyPrefix))
    if (found === -1) continue
    const solution = { counter: first + found, derivedKey: keys[found] }
    return { text: btoa(JSON.stringify({ challenge, solution })), expires: expiresAt * 1000 }
  }
  throw new Error('no solution')
}

/** @type {Map<string, Promise<unknown>>} */
const scripts = new Map()

// Once, since a page may allow only one of a name.
// @ts-expect-error TypeScript does not know it yet
const policy = globalThis.trustedTypes?.createPolicy('waitlist', { createScriptURL: url => url })

/** Loads the script of a widget once, or again if that failed. @type {(widget: Widget) => Promise<unknown>} */
function loaded({ script, isModule }) {
  const known = scripts.get(script)
  if (known) return known
  const element = document.createElement('script')
  if (isModule) element.type = 'module'
  element.src = policy ? policy.createScriptURL(script) : script
  const loading = new Promise((resolve, reject) => {
    element.onload = resolve
    element.onerror = reject
    setTimeout(reject, 20_000)
  })
  loading.catch(() => scripts.delete(script))
  scripts.set(script, loading)
  document.head.append(element)
  return loading
}

/**
 * The challenge of one form. The widget has its place before the button.
 * @param {Description} description
 * @param {string} service with a slash at the end
 * @param {HTMLFormElement} form
 * @param {HTMLElement} button
 */
export function challenged({ member, widget }, service, form, button) {
  /** @type {ReturnType<typeof solved> | undefined} */
  let solution
  /** @type {HTMLElement | undefined} */
  let place
  const api = () => widget?.api && /** @type {any} */ (globalThis)[widget.api]

  async function solve() {
    const known = await solution?.catch(() => null)
    if (!known || known.expires < Date.now() + 10_000) solution = solved(`${service}api/challenge`)
    return /** @type {ReturnType<typeof solved>} */ (solution)
  }

  /** @param {Widget} widget */
  async function show(widget) {
    if (place) return loaded(widget)
    place = document.createElement(widget.tag)
    for (const [name, value] of Object.entries(widget.attributes)) place.setAttribute(name, value)
    const frame = document.createElement('div')
    frame.className = 'challenge'
    frame.append(place)
    button.before(frame)
    const isLate = scripts.has(widget.script)
    await loaded(widget)
    // A script that was there before does not look for new places.
    if (isLate) api()?.render?.(place, { sitekey: widget.attributes['data-sitekey'] })
  }

  const ready = async () => {
    await (widget === null ? solve() : show(widget))
  }

  return {
    /** Whether the visitor may have to do something. */
    isVisible: widget !== null,

    /** Begins while the visitor types. */
    prepare() {
      ready().catch(() => {})
    },

    /**
     * The member of a signup that has the solution; null: the visitor has not solved it yet. Rejects if it cannot be loaded.
     * @returns {Promise<object | null>}
     */
    async proof() {
      if (widget === null) return { [member]: (await solve()).text }
      await show(widget)
      const text = String(new FormData(form).get(member) ?? '')
      return text === '' ? null : { [member]: text }
    },

    /** A solution is good for one address, and not for long. */
    renew() {
      solution = undefined
      const resettable = api() || place
      resettable?.reset?.()
    },
  }
}
