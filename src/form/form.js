/**
 * `<waitlist-form>`: a form for a page of any origin. What is sent is kept in the browser's storage, if that is allowed, until
 * the service has answered for good, for at most 30 days. `script.ts` makes one file of this, its style and its sentences.
 */
import style from './form.css' with { type: 'text' }
import english from './sentences.json' with { type: 'json' }

/** The service that this script came from, with a slash at the end. */
const home = new URL('.', import.meta.url).href

/** The addresses that the service takes. */
const address =
  /^(?!\.)(?!.*\.[.@])[\w!#$%&'*+/=?^`{|}~.-]+@((?!-)[a-z\d-]{1,63}(?<!-)\.)+(?![\d-])[a-z\d-]{1,63}(?<!-)$/i

/** What is typed for the names of the commonest mailboxes. Their ends go wrong, too. */
const slips = Object.entries({
  gmail: 'gmial gmai gmal gamil gnail',
  hotmail: 'hotmial hotmal',
  outlook: 'outlok',
  yahoo: 'yaho yahooo',
  icloud: 'icoud',
})

/** The address that was probably meant. @type {(email: string) => string | undefined} */
const meant = email => {
  const [, user, typed = ''] = /^(.+@)(\w+)\.(com|con|cmo|comm|om)$/i.exec(email) ?? []
  const [name] = slips.find(each => each.join(' ').split(' ').includes(typed.toLowerCase())) ?? []
  const better = `${user}${name}.com`
  return name === undefined || better.toLowerCase() === email.toLowerCase() ? undefined : better
}

/**
 * What a visitor sent, and has no answer to. `query` is that of the page, where it is known. `place`: whether this device has
 * it, or this page alone.
 * @typedef {{ readonly key: string, readonly name: string, readonly email: string, readonly query?: string, readonly place: 'kept' | 'notKept' }} Signup
 * @typedef {{ joined: 'new' | 'known' | 'saved', sentence?: string } | { refused: string }} Definite
 * @typedef {{ again: number, isLimited?: boolean, isUnsolved?: boolean }} Later Seconds that the service asks for; 0: it does not.
 */

// What this device keeps: an item of the storage for each signup, so that two tabs never overwrite each other's.

/** Milliseconds: 30 days. */
const KEPT = 2_592_000_000
/** Signups for one service. What comes on top is not saved, and that is said. */
const MOST = 100

/** What was sent from this page, by key: also what could not be saved. @type {Record<string, Signup>} */
const own = {}

/** @type {(service: string) => string[]} */
const keysOf = service => {
  let kept
  try {
    kept = localStorage
  } catch {}
  return Object.keys({ ...kept, ...own }).filter(key => key.startsWith(`waitlist ${service} `))
}

/** @type {(key: string, value: object | null) => boolean} */
const write = (key, value) => {
  if (value === null) delete own[key]
  try {
    if (value === null) localStorage.removeItem(key)
    else localStorage.setItem(key, JSON.stringify(value))
    return true
  } catch {
    return false
  }
}

/**
 * What is kept under a key. It may be anything: what is no signup of the last 30 days is removed.
 * @type {(key: string) => Signup | null}
 */
const read = key => {
  if (own[key]) return own[key]
  try {
    const { name, email, time } = JSON.parse(localStorage.getItem(key) ?? '')
    const isSignup = name.length <= 200 && email.length <= 255 && address.test(email)
    if (isSignup && Math.abs(Date.now() - time) < KEPT) return { key, name, email, place: 'kept' }
  } catch {}
  write(key, null)
  return null
}

/** @type {Set<string>} */
const underWay = new Set()

/**
 * Does this with a signup, unless another form or another tab is at it. Without locks (plain HTTP) two tabs may both send it,
 * which is harmless: an address is listed once.
 * @template Result
 * @param {string} key
 * @param {() => Promise<Result>} run
 * @returns {Promise<Result | null>}
 */
async function alone(key, run) {
  if (underWay.has(key)) return null
  underWay.add(key)
  try {
    const { locks } = navigator
    // Where storage is forbidden, so are locks.
    return await (locks ? locks.request(key, { ifAvailable: true }, lock => lock && run()).catch(run) : run())
  } finally {
    underWay.delete(key)
  }
}

/**
 * Sends a signup once. It outlives the page, and ends after 30 seconds.
 * @param {string} service
 * @param {Signup} signup
 * @param {object} solution
 * @param {object} accept
 * @returns {Promise<Definite | Later>}
 */
async function post(service, { name, email, query = '' }, solution, accept) {
  const url = `${service}api/waitlist${query}`
  const bound = new AbortController()
  const timer = setTimeout(() => bound.abort(), 30_000)
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...accept },
      credentials: 'include',
      keepalive: true,
      body: JSON.stringify({ name, email, ...solution }),
      signal: bound.signal,
    })
    const { status, headers } = response
    const { success, message, alreadyExisted, error } = (await response.json().catch(() => null)) ?? {}
    if (status === 200 && success === true) return { joined: alreadyExisted ? 'known' : 'new', sentence: message }
    // An error for us, but not for the visitor: the signup is stored, and only its completion is late.
    if (headers.get('Waitlist-Signup') === 'saved') return { joined: 'saved' }
    if (status === 400 && typeof error === 'string') return { refused: error }
    const isLimited = status === 429
    return { again: Math.min(Number(headers.get('Retry-After')) || (isLimited ? 60 : 0), 86_400), isLimited }
  } catch {
    if (navigator.onLine && !bound.signal.aborted)
      console.warn(`${url} gave no answer to read: is ${location.origin} in its CORS_ORIGINS?`)
    return { again: 0 }
  } finally {
    clearTimeout(timer)
  }
}

/**
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {(Node | string)[]} content
 */
const make = (tag, attributes = {}, ...content) => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...content)
  return element
}

/**
 * A sentence with values in the places of their names. Each is isolated, since it may be written from right to left.
 * @param {string} sentence
 * @param {Record<string, string>} values
 */
const filled = (sentence, values) =>
  sentence.split(/\{(\w+)\}/).map((part, index) => (index % 2 === 0 ? part : make('bdi', {}, values[part] ?? '')))

/** The service's sentence about a refusal, which begins like a part of one. @type {(text: string) => string} */
const sentenceOf = text => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?。…؟]$/.test(text) ? '' : '.')

/** There is nothing left to do. */
const DONE = { again: 0 }

/** @type {Set<WaitlistForm>} */
const forms = new Set()
let made = 0
/** @type {CSSStyleSheet | undefined} */
let sheet

// Where there is no browser, as on a server that renders pages, this file can be imported and does nothing.
class WaitlistForm extends (globalThis.HTMLElement ?? class {}) {
  /** @type {HTMLFormElement} */ #form
  /** @type {HTMLInputElement} */ #name
  /** @type {HTMLInputElement} */ #email
  /** @type {HTMLElement} */ #button
  /** @type {HTMLElement} */ #status
  /** Ends the listeners. @type {AbortController} */ #connected
  #sentences = english
  #language = 'en'
  /** How refusals begin that are about a field, and which. @type {[string, string][]} */ #refusals = []
  /** Undefined: the service has not said yet. @type {import('./form-challenge.js').Challenge | null | undefined} */ #challenge
  /** @type {Promise<void> | undefined} */ #asking
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #slow
  /** What was sent here last and has no answer. @type {Signup | null} */ #mine = null
  /** Whether the visitor looks on. */ #isWatched = false
  /** Not before this time is anything sent. */ #until = 0
  /** Whether that is since there were too many attempts. @type {boolean | undefined} */ #isLimited
  /** Whether it is since the visitor has to solve a challenge. @type {boolean | undefined} */ #isUnsolved
  #wait = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer
  /** Those that were sent again with a new solution. @type {Set<string>} */ #solvedAnew = new Set()

  connectedCallback() {
    if (document.readyState === 'loading') {
      // The form in this element may not have been read yet.
      return document.addEventListener('DOMContentLoaded', () => this.isConnected && this.connectedCallback())
    }
    this.#form ?? this.#build()
    forms.add(this)
    this.#connected = new AbortController()
    const { signal } = this.#connected
    const form = this.#form
    const flush = () => this.#flush()
    form.addEventListener('submit', event => this.#submit(event), { signal })
    form.addEventListener('focusin', ({ target }) => target !== this.#status && this.#challenge?.prepare(), { signal })
    // A hint comes when a field is left, and goes while it is put right.
    for (const input of [this.#name, this.#email]) {
      input.addEventListener('focusout', () => input.value.trim() && this.#check(input), { signal })
      input.addEventListener('input', () => this.#hintOf(input).hasChildNodes() && this.#check(input, false), {
        signal,
      })
    }
    for (const event of ['online', 'pageshow']) addEventListener(event, flush, { signal })
    document.addEventListener('visibilitychange', () => document.hidden || flush(), { signal })
    // Another tab writes the answer before it removes a signup.
    addEventListener('storage', event => this.#learn(event), { signal })
    this.#ask()
    flush()
  }

  disconnectedCallback() {
    forms.delete(this)
    this.#connected?.abort()
    clearTimeout(this.#timer)
  }

  /** The address of the service, with a slash at the end. */
  get #service() {
    const own = this.getAttribute('service')
    return own === null ? home : `${new URL(own, location.href).href.replace(/\/$/, '')}/`
  }

  /** Brings the form within this element to life, or makes one. */
  #build() {
    if (!sheet) {
      sheet = new CSSStyleSheet()
      sheet.replaceSync(style)
      document.adoptedStyleSheets.push(sheet)
    }
    const own = this.querySelector('form')
    const form = /** @type {HTMLFormElement} */ (own ?? make('form', { lang: 'en', dir: 'ltr' }))
    this.#form = form
    form.noValidate = true
    if (own === null) {
      const id = `waitlist-${++made}`
      const template = this.querySelector('template')
      form.append(
        make('label', { for: `${id}-name`, 'data-says': 'name' }),
        make('input', { id: `${id}-name`, name: 'name', autocomplete: 'name', dir: 'auto', required: '' }),
        make('label', { for: `${id}-email`, 'data-says': 'email' }),
        make('input', {
          id: `${id}-email`,
          name: 'email',
          type: 'email',
          autocomplete: 'email',
          dir: 'auto',
          required: '',
        }),
        make('button', { 'data-says': 'join' }),
      )
      this.replaceChildren(form, ...(template ? [template] : []))
    }
    const field = (/** @type {string} */ name) => /** @type {HTMLInputElement} */ (form.elements.namedItem(name))
    this.#name = field('name')
    this.#email = field('email')
    this.#button = /** @type {HTMLElement} */ (form.querySelector('button:not([type=button], [type=reset])'))
    this.#button.removeAttribute('disabled')
    for (const input of [this.#name, this.#email]) {
      if (input.hasAttribute('aria-describedby')) continue
      const hint = make('p', { class: 'hint', id: `waitlist-${++made}-hint`, dir: 'auto', 'aria-live': 'polite' })
      input.setAttribute('aria-describedby', hint.id)
      input.after(hint)
    }
    this.#status =
      form.querySelector(':scope > [role=status]') ?? make('p', { role: 'status', tabindex: '-1', dir: 'auto' })
    if (!this.#status.parentNode) form.append(this.#status)
    this.#speak()
  }

  /** Says what is always there, in the language of the visitor. */
  #speak() {
    const words = /** @type {Record<string, string>} */ (this.#sentences)
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (this.#form.querySelectorAll('[data-says]'))) {
      element.textContent = words[element.dataset.says ?? ''] ?? ''
    }
    const label = this.getAttribute('label')
    if (label !== null) this.#button.textContent = label
  }

  /**
   * In which languages to answer: that of the page, if it says one, then those of the browser. Any other value would need
   * leave of the service (Fetch standard, "CORS-safelisted request-header").
   */
  get #accept() {
    const wanted = `${[this.closest('[lang]')?.lang, ...navigator.languages]}`
    return { 'Accept-Language': wanted.slice(0, 128).replace(/[^a-z\d,]/gi, '-') }
  }

  /** Which field a refusal is about. @param {string} refusal */
  #fieldIn(refusal) {
    return this.#refusals.find(([start]) => refusal.startsWith(start))?.[1]
  }

  /** Asks the service for what the form needs of it, once. Without it the form speaks English. */
  #ask() {
    this.#asking ??= fetch(`${this.#service}form.json`, {
      cache: this.#solvedAnew.size > 0 ? 'no-cache' : 'default',
      headers: this.#accept,
      signal: AbortSignal.timeout(10_000),
    })
      .then(response => (response.ok ? response.json() : Promise.reject()))
      .then(async ({ challenge, language, dir, sentences, refusals }) => {
        this.#challenge =
          challenge &&
          (await import('./form-challenge.js')).challenged(challenge, this.#service, this.#form, this.#button)
        this.#sentences = { ...english, ...sentences }
        this.#language = language
        this.#refusals = refusals ?? []
        if (this.#form.querySelector('[data-says]')) {
          this.#form.lang = language
          this.#form.dir = dir
        }
        this.#speak()
        if (this.contains(document.activeElement)) this.#challenge?.prepare()
      })
      .catch(() => {
        this.#asking = undefined
      })
    return this.#asking
  }

  /** @param {HTMLInputElement} input */
  #hintOf(input) {
    const [id = ''] = (input.getAttribute('aria-describedby') ?? '').split(' ')
    return /** @type {HTMLElement} */ (document.getElementById(id))
  }

  /** @param {HTMLInputElement} input @param {string} problem */
  #hint(input, problem) {
    input.ariaInvalid = String(problem !== '')
    this.#hintOf(input).textContent = problem
    return problem === ''
  }

  /** Whether the service would take this. @param {HTMLInputElement} input */
  #check(input, isLeft = true) {
    const words = this.#sentences
    const text = input.value.trim()
    const isName = input === this.#name
    const most = isName ? 100 : 255
    if (text === '') return this.#hint(input, isName ? words.nameMissing : words.emailMissing)
    if ([...text].length > most) return this.#hint(input, words.tooLong.replace('{most}', String(most)))
    if (!isName && !address.test(text)) return this.#hint(input, words.emailWrong)
    this.#hint(input, '')
    const better = isName ? undefined : meant(text)
    if (better && isLeft) {
      const accept = make('button', { type: 'button' }, ...filled(words.didYouMean, { email: better }))
      accept.onclick = () => {
        input.value = better
        input.focus()
        this.#hint(input, '')
      }
      this.#hintOf(input).append(accept)
    }
    return true
  }

  /** @param {string} state @param {string | (Node | string)[]} sentence */
  #say(state, sentence) {
    clearTimeout(this.#slow)
    const before = this.#form.dataset.state + this.#status.textContent
    this.#form.dataset.state = state
    this.#status.ariaLive = 'polite'
    // What is said already is not read aloud again, and the page is moved for the answer to a click alone.
    const said = make('p', {}, ...[sentence].flat())
    if (before !== state + said.textContent) this.#status.replaceChildren(...said.childNodes)
    this.#button.ariaDisabled = String(state === 'sending')
    if (this.#isWatched) this.#status.scrollIntoView({ block: 'nearest' })
    this.#isWatched &&= state === 'sending'
  }

  /** @param {SubmitEvent} event */
  #submit(event) {
    event.preventDefault()
    const { state } = this.#form.dataset
    if (state === 'sending' || state === 'done') return
    const wrong = [this.#name, this.#email].filter(input => !this.#check(input))
    this.#isWatched = true
    if (wrong.length > 0) {
      this.#say('ready', '')
      return wrong[0]?.focus()
    }
    const [name, email, time] = [this.#name.value.trim(), this.#email.value.trim(), Date.now()]
    const key = `waitlist ${this.#service} ${time} ${Math.random().toString(36).slice(2)}`
    this.#say('sending', this.#sentences.sending)
    this.#slow = setTimeout(() => this.#say('sending', this.#sentences.slow), 4_000)
    // The same address takes the place of what waits, unless that is on its way. Another one may be that of somebody else.
    if (this.#mine?.email === email) {
      if (underWay.has(this.#mine.key)) return
      write(this.#mine.key, null)
    }
    const isKept = keysOf(this.#service).length < MOST && write(key, { name, email, time })
    this.#mine = own[key] = { key, name, email, query: location.search, place: isKept ? 'kept' : 'notKept' }
    this.#wait = 0
    this.#flush(key)
  }

  /**
   * Sends what has no answer yet, one after the other: that of this form first, then what earlier visits left. `asked`: what
   * the visitor has just sent.
   * @returns {Promise<void>}
   */
  async #flush(asked = '') {
    clearTimeout(this.#timer)
    const mine = this.#mine
    const left = this.#until - performance.now()
    if (left > 0) return this.#rest(left)
    // In any order, so that one which always fails holds up no other for long.
    const others = keysOf(this.#service).sort(() => Math.random() - 0.5)
    let isElsewhere = false
    for (const key of mine ? [mine.key, ...others] : others) {
      const signup = read(key)
      if (signup === null) continue
      const answer = await alone(signup.key, () => this.#deliver(signup, signup.key === asked))
      if (answer === null) isElsewhere = true
      else if (answer === DONE) this.#wait = 0
      else return this.#postpone(signup, answer)
    }
    // Another tab, or another form, is at it. It may not live to tell.
    if (isElsewhere) this.#later(() => this.#flush(), 5_000)
  }

  /** @param {Signup} signup @param {Later} later */
  #postpone(signup, { again, isLimited, isUnsolved }) {
    this.#until = performance.now() + again * 1_000
    this.#isLimited = isLimited
    this.#isUnsolved = isUnsolved
    if (!this.#mine) this.#tellOf(signup, 'ready', this.#sentences[isUnsolved ? 'solve' : signup.place])
    // Waits are doubled, up to five minutes. Not all who met the same outage come back at the same moment.
    this.#wait = isUnsolved ? 0 : Math.min(2 * this.#wait || 2_000, 300_000)
    this.#rest(Math.max(again * 1_000, this.#wait * (0.75 + Math.random() / 2)))
  }

  /** @param {number} milliseconds @returns {void} */
  #rest(milliseconds) {
    if (this.#mine && this.#isLimited) return this.#countDown()
    if (this.#mine) this.#say('kept', this.#sentences[this.#isUnsolved ? 'solve' : this.#mine.place])
    this.#later(() => this.#flush(), milliseconds)
  }

  /** @param {() => void} act @param {number} milliseconds */
  #later(act, milliseconds) {
    clearTimeout(this.#timer)
    if (this.isConnected) this.#timer = setTimeout(act, milliseconds)
  }

  /** Says how long it takes until the next attempt, and makes that. @returns {void} */
  #countDown() {
    const left = Math.ceil((this.#until - performance.now()) / 1_000)
    if (left <= 0 || !this.#mine) return void this.#flush()
    const [value, unit] = left > 90 ? [Math.ceil(left / 60), 'minute'] : [left, 'second']
    const wait = new Intl.NumberFormat(this.#language, { style: 'unit', unit, unitDisplay: 'short' }).format(value)
    const sentence = this.#sentences.tooMany.replace('{wait}', wait)
    if (this.#form.dataset.state !== 'waiting') this.#say('waiting', sentence)
    // Read aloud once, not every second.
    else Object.assign(this.#status, { ariaLive: 'off', textContent: sentence })
    this.#later(() => this.#countDown(), 500)
  }

  /**
   * One attempt. Nothing to do later: there is a definite answer, which has been told. `isAsked`: the visitor has just sent it.
   * @param {Signup} signup
   * @returns {Promise<Later>}
   */
  async #deliver(signup, isAsked = false) {
    await this.#ask()
    /** @type {object | null} */
    let proof = {}
    try {
      if (this.#challenge) proof = await this.#challenge.proof()
    } catch {
      return isAsked && !globalThis.crypto.subtle ? this.#withdraw(this.#sentences.unsolvable) : { again: 0 }
    }
    if (proof === null) {
      return isAsked ? this.#withdraw(this.#sentences.solve) : { again: 2, isUnsolved: true }
    }
    const answer = await post(this.#service, signup, proof, this.#accept)
    if ('again' in answer) return answer
    const isRefused = 'refused' in answer
    // The service may ask for a solution without this form having heard of it.
    if (isRefused && this.#challenge === undefined) return { again: 0 }
    this.#challenge?.renew()
    // Another solution may change a refusal, unless the visitor would have to find it; so may a challenge that is new here.
    const canRenew = isRefused && !(isAsked && this.#challenge?.isVisible) && !this.#fieldIn(answer.refused)
    if (canRenew && !this.#solvedAnew.has(signup.key)) {
      this.#solvedAnew.add(signup.key)
      if (this.#challenge === null) this.#asking = undefined
      return this.#deliver(signup)
    }
    write(signup.key, { answer })
    write(signup.key, null)
    for (const form of forms) form.#tell(signup, answer, form === this)
    return DONE
  }

  /** Nothing was sent, and the visitor hears why. @param {string} sentence */
  #withdraw(sentence) {
    if (this.#mine) write(this.#mine.key, null)
    this.#mine = null
    this.#say('failed', sentence)
    return DONE
  }

  /** The answer to what was sent here may come from another tab. @param {StorageEvent} event */
  #learn({ key, newValue }) {
    const signup = own[key ?? '']
    if (!signup) return
    const { answer } = JSON.parse(newValue ?? '{}')
    if (!answer) return
    delete own[signup.key]
    for (const form of forms) form.#tell(signup, answer)
  }

  /** @param {Signup} signup @param {Definite} answer */
  #tell(signup, answer, isSender = false) {
    const words = this.#sentences
    let isMine = signup.key === this.#mine?.key
    if (isMine) this.#mine = null
    else if (!isSender) return
    // Somebody else may have begun to type.
    isMine &&= this.#email.value.trim() === signup.email
    if ('refused' in answer) {
      const sentence = sentenceOf(answer.refused)
      if (!isMine) return this.#tellOf(signup, 'failed', sentence)
      const field = this.#fieldIn(answer.refused)
      if (!field) return this.#say('failed', sentence)
      const input = field === 'name' ? this.#name : this.#email
      this.#say('ready', '')
      this.#hint(input, sentence)
      return input.focus()
    }
    const { joined, sentence = words.joined } = answer
    const told = joined === 'saved' ? words.saved : sentence
    if (isMine) this.#thank(signup, told)
    else this.#tellOf(signup, 'ready', told)
    this.dispatchEvent(new CustomEvent('joined', { bubbles: true, detail: { outcome: joined } }))
  }

  /** Of what an earlier visit left, unless the visitor is about to send something. @param {Signup} signup @param {string} state @param {string} sentence */
  #tellOf({ name }, state, sentence) {
    if (this.#mine === null && this.#form.dataset.state !== 'done')
      this.#say(state, filled(this.#sentences.told, { name, sentence }))
  }

  /** @param {Signup} signup @param {string} sentence */
  #thank({ name, email }, sentence) {
    const own = this.querySelector('template')
    const spans = ['{sentence}', '{email}'].map(place => make('span', {}, place))
    const content = own?.content.cloneNode(true) ?? make('p', {}, make('strong', {}, this.#sentences.thanks), ...spans)
    const walker = document.createTreeWalker(content, NodeFilter.SHOW_TEXT)
    const texts = []
    while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode))
    for (const text of texts) text.replaceWith(...filled(text.data, { name, email, sentence }))
    // The page does not move when the fields go.
    this.#form.style.minHeight = `${this.#form.getBoundingClientRect().height}px`
    const hasFocus = this.contains(document.activeElement) || document.activeElement === document.body
    this.#say('done', [...content.childNodes])
    if (hasFocus) this.#status.focus()
  }
}

if (globalThis.customElements && !customElements.get('waitlist-form'))
  customElements.define('waitlist-form', WaitlistForm)
