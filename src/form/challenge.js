/** The challenge of a form. `form.js` loads this if its service asks for one. */

const bytesOf = hex => Uint8Array.from(hex.match(/../g) ?? [], pair => Number.parseInt(pair, 16))

/** Solves a challenge of the service (ALTCHA, protocol 2): finds the number from which a key was derived. */
async function solve(url) {
  const challenge = await (await fetch(url, { signal: AbortSignal.timeout(20_000) })).json()
  const { nonce, salt, cost, keyLength, keyPrefix, expiresAt } = challenge.parameters
  const derive = async counter => {
    const guess = bytesOf(`${nonce}${counter.toString(16).padStart(8, '0')}`)
    const key = await crypto.subtle.importKey('raw', guess, 'PBKDF2', false, ['deriveBits'])
    const how = { name: 'PBKDF2', hash: 'SHA-256', salt: bytesOf(salt), iterations: cost }
    const bits = new Uint8Array(await crypto.subtle.deriveBits(how, key, 8 * keyLength))
    return Array.from(bits, byte => byte.toString(16).padStart(2, '0')).join('')
  }
  // Several at once: browsers derive in threads of their own.
  for (let first = 0; first < 100_000; first += 16) {
    const keys = await Promise.all(Array.from({ length: 16 }, (_, index) => derive(first + index)))
    const found = keys.findIndex(key => key.startsWith(keyPrefix))
    if (found === -1) continue
    const solution = { counter: first + found, derivedKey: keys[found] }
    return { text: btoa(JSON.stringify({ challenge, solution })), expires: expiresAt * 1000 }
  }
  throw new Error('no solution')
}

/** The scripts of widgets, by address. */
const scripts = new Map()

// Once, since a page may allow only one of a name.
const policy = globalThis.trustedTypes?.createPolicy('waitlist', { createScriptURL: url => url })

/** Loads the script of a widget once, or again if that failed. */
function load({ script, isModule }) {
  if (scripts.has(script)) return scripts.get(script)
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
 * The challenge of one form. `member`: what a signup calls its solution. `widget`: the vendor's; null: the challenge is one of
 * the service's own. `home`: the service, with a slash at the end. `host`: the element of the form.
 */
export function open({ member, widget }, home, host) {
  let solution
  let place
  // Vendors look for it in the page, and not in the shadow of an element.
  const frame = document.createElement('div')
  frame.slot = 'challenge'
  const api = () => globalThis[widget.api]

  async function solved() {
    const last = await solution?.catch(() => null)
    if (!last || last.expires < Date.now() + 10_000) solution = solve(`${home}api/challenge`)
    return solution
  }

  async function show() {
    if (place) return load(widget)
    place = document.createElement(widget.tag)
    for (const [name, value] of Object.entries(widget.attributes)) place.setAttribute(name, value)
    frame.append(place)
    host.append(frame)
    const isLate = scripts.has(widget.script)
    await load(widget)
    // A script that was there before does not look for new places.
    if (isLate) api()?.render?.(place, { sitekey: widget.attributes['data-sitekey'] })
  }

  return {
    /** Begins while the visitor types. */
    prepare() {
      const begun = widget ? show() : solved()
      begun.catch(() => {})
    },

    /** The member of a signup with the solution; null: the visitor has not solved it yet. Rejects if it cannot be loaded. */
    async proof() {
      if (!widget) return { [member]: (await solved()).text }
      await show()
      const text = frame.querySelector(`[name="${member}"]`)?.value
      return text ? { [member]: text } : null
    },

    /** A solution is good for one address. */
    renew() {
      solution = undefined
      if (widget) (api() ?? place)?.reset?.()
    },
  }
}
