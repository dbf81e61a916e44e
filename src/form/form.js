/** `<waitlist-form>`: a form for a page of any origin. The service puts its settings before this, as `FORM` (routes.ts). */

/** The service, with a slash at the end. */
const home = new URL('.', import.meta.url).href
const emailShape = new RegExp(`^${FORM.email}$`)

const KEY = `waitlist ${home}`

/** The last signup that had no answer, if this device has it and it is not a week old. */
function kept() {
  try {
    const signup = JSON.parse(localStorage[KEY])
    if (emailShape.test(signup.email) && Date.now() - signup.time < 604_800_000) return signup
  } catch {}
}

const isKept = ({ time }) => kept()?.time === time

/** Visitors can do nothing about this, so it is for the founder's console. */
function misconfigured(why) {
  console.error(`Waitlist: not set up right. ${why}`)
  return { is: 'misconfigured' }
}

/** Sends a signup. `is`: joined, refused, misconfigured or late, which is mended in `seconds` or so. */
async function post(url, body, isRepeated) {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      credentials: 'include',
      keepalive: true,
      body,
      signal: AbortSignal.timeout(30_000),
    })
    const { status, headers } = response
    const { success, message, alreadyExisted, error } = (await response.json().catch(() => 0)) || {}
    if (success) return { is: 'joined', outcome: alreadyExisted ? 'known' : 'new', text: message }
    // The service has it, and completes it later.
    if (headers.get('Waitlist-Signup') === 'saved') return { is: 'joined', outcome: 'saved' }
    if (status === 400 && error) return { is: 'refused', text: error }
    const seconds = +headers.get('Retry-After')
    if (status === 429) return { is: 'late', seconds: seconds || 60, isLimited: true }
    return status >= 500 ? { is: 'late', seconds } : misconfigured(`${url} answers ${status}.`)
  } catch (error) {
    // To a script, CORS looks like a network that is down; but then the service is up, twice.
    const health = error.name === 'TimeoutError' ? null : await fetch(`${home}api/health`).catch(() => null)
    if (!health?.ok) return { is: 'late', seconds: 0 }
    if (!isRepeated) return post(url, body, true)
    return misconfigured(`Is ${location.origin} in CORS_ORIGINS?`)
  }
}

const slips = {
  gmail: 'gmial gmai gmal gamil gnail gmil gmaill',
  hotmail: 'hotmial hotmal hotmai',
  outlook: 'outlok',
  yahoo: 'yaho yahooo',
  icloud: 'icoud',
}

/** The address that was probably meant. */
function suggestEmail(email) {
  const [, user, typed] = /^(.+@)(\w+)\.(com?|cm|om|con|cmo|comm)$/.exec(email.toLowerCase()) ?? []
  const name = Object.keys(slips).find(each => `${each} ${slips[each]}`.split(' ').includes(typed))
  const better = `${user}${name}.com`
  return name && better !== email.toLowerCase() && better
}

function make(tag, attributes, ...content) {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...content)
  return element
}

/** A sentence with a value in it, which may be written in the other direction. */
const fill = (sentence, value) =>
  sentence.split(/\{\w+\}/).flatMap((part, index) => (index ? [make('bdi', {}, value), part] : part))

/** The language of the page or, if it has none, of the browser, as far as the service speaks it. */
function languageOf(host) {
  for (const wanted of [host.closest('[lang]')?.lang ?? '', ...navigator.languages]) {
    let tag = wanted.toLowerCase()
    while (tag && !FORM.languages[tag]) tag = tag.replace(/-?[^-]*$/, '')
    if (tag) return FORM.languages[tag]
  }
  return FORM.languages.en
}

const sheet = new CSSStyleSheet()
sheet.replaceSync(FORM.style)

/** Draws the form into the shadow of its element. */
function draw(host) {
  const { tag, dir, words } = languageOf(host)
  const name = makeInput('name', 'text')
  const email = makeInput('email', 'email')
  const button = make('button', { part: 'button' }, make('span', {}, host.getAttribute('label') ?? words.join))
  const status = make('div', { role: 'status', tabindex: -1 })
  const content = [name.parentNode, email.parentNode, make('slot', { name: 'challenge' }), button, status]
  const form = make('form', { lang: tag, dir, novalidate: '' }, ...content)
  /** The signup that has no answer yet; `timer` runs while it waits for the next attempt. */
  let pending, timer
  let wait = 0
  /** The address that a better one was suggested for. */
  let doubted
  let challenge

  form.onsubmit = submit
  const root = host.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [sheet]
  root.append(form)
  addEventListener('online', retry)
  // What an earlier visit left is sent without a word.
  if (kept()) deliver({ ...kept(), isSilent: true })

  function makeInput(name, type) {
    const label = words[name]
    const help = { placeholder: label, autocomplete: name, 'aria-describedby': `${name}-hint` }
    const input = make('input', { id: name, name, type, part: 'input', dir: 'auto', required: '', ...help })
    const hint = make('p', { id: `${name}-hint`, part: 'hint', 'aria-live': 'polite' })
    input.onfocus = () => openChallenge().catch(() => {})
    // A hint comes when the field is left, and goes while it is put right.
    input.onchange = () => check(input)
    input.oninput = () => hint.firstChild && check(input)
    make('div', { class: 'field' }, make('label', { for: name, part: 'label' }, label), input, hint)
    return input
  }

  /** A sentence of the API. Those about errors begin like a part of one. */
  function translate(text) {
    const found = words[text] ?? text
    return found[0].toUpperCase() + found.slice(1) + (/[.!?。…؟]$/.test(found) ? '' : '.')
  }

  function hint(input, ...content) {
    input.ariaInvalid = content.length > 0
    input.nextSibling.replaceChildren(...content)
    return content.length === 0
  }

  function check(input) {
    const text = input.value.trim()
    if (!text) return hint(input, translate(`${input.name} is required`))
    if (input === name || emailShape.test(text)) return hint(input)
    return hint(input, translate('email must be a valid email address'))
  }

  function submit(event) {
    event.preventDefault()
    if (form.dataset.state === 'sending') return
    const [wrong] = [name, email].filter(input => !check(input))
    if (wrong) return wrong.focus()
    const [query, time] = [location.search, Date.now()]
    const signup = { name: name.value.trim(), email: email.value.trim(), query, time }
    const better = doubted !== signup.email && suggestEmail(signup.email)
    if (better) return suggest(signup.email, better)
    try {
      localStorage[KEY] = JSON.stringify(signup)
    } catch {}
    wait = 0
    show('sending', words.sending)
    deliver(signup)
  }

  /** Asks once. A click takes the suggestion, and sends it. */
  function suggest(typed, better) {
    doubted = typed
    const accept = make('button', { type: 'button' }, ...fill(words.didYouMean, better))
    accept.onclick = () => {
      email.value = better
      button.focus()
      form.requestSubmit()
    }
    hint(email, accept)
    accept.focus()
  }

  async function deliver(signup) {
    clearTimeout(timer)
    timer = undefined
    pending = signup
    const { is, outcome, text, ...delay } = await attempt(signup)
    if (is === 'joined') host.dispatchEvent(new CustomEvent('joined', { bubbles: true, detail: { outcome } }))
    if ((is === 'joined' || is === 'refused') && isKept(signup)) delete localStorage[KEY]
    // The visitor may have corrected it since.
    if (pending !== signup) return
    if (is === 'late') return postpone(signup, delay)
    pending = undefined
    if (signup.isSilent) return
    if (is === 'misconfigured') return show('failed', words.later)
    if (is === 'refused') return refuse(text)
    panel('done', fill(words.thanks, signup.name), text ? translate(text) : words.saved, signup.email)
  }

  /** Loads what solves the challenge, if there is one, and begins. */
  async function openChallenge() {
    if (!FORM.challenge) return
    const { open } = await import('./form-challenge.js')
    challenge ??= open(FORM.challenge, home, host)
    challenge.prepare()
    return challenge
  }

  async function attempt(signup) {
    const isWatched = form.dataset.state === 'sending'
    let proof = {}
    try {
      if (await openChallenge()) proof = await challenge.proof()
    } catch {
      return crypto.subtle ? { is: 'late', seconds: 0 } : misconfigured('A challenge needs https://.')
    }
    const { name, email, query } = signup
    const body = JSON.stringify({ name, email, ...proof })
    const answer = proof
      ? await post(`${home}api/waitlist${query}`, body)
      : { is: 'refused', text: 'please solve the challenge' }
    if (proof && answer.text) challenge?.renew()
    return isWatched || !/challenge/.test(answer.text) ? answer : { is: 'late', seconds: 5 }
  }

  function refuse(text) {
    const input = /^name/.test(text) ? name : /email/.test(text) ? email : null
    // The page is older than the challenge.
    const isOld = !FORM.challenge && /challenge/.test(text)
    show(input ? 'ready' : 'failed', input ? '' : isOld ? words.reload : translate(text))
    if (!input) return
    hint(input, translate(text))
    input.focus()
  }

  function postpone(signup, { seconds, isLimited }) {
    // Not all who met the same outage come back at the same time.
    wait = Math.min(2 * wait || 2, 60)
    const least = Math.max(seconds, wait * (0.75 + Math.random() / 2))
    if (isLimited && least <= 120 && !signup.isSilent) return countDown(signup, Date.now() + least * 1_000)
    timer = setTimeout(retry, least * 1_000)
    if (signup.isSilent) return
    if (isKept(signup)) panel('kept', [words.kept], words.next, signup.email)
    else panel('open', [words.notKept], signup.email)
  }

  function countDown(signup, end) {
    const seconds = Math.ceil((end - Date.now()) / 1_000)
    if (seconds <= 0) return deliver(signup)
    const { format } = new Intl.NumberFormat(tag, { style: 'unit', unit: 'second', unitDisplay: 'long' })
    const sentence = words.tooMany.replace('{wait}', format(seconds))
    // Read aloud once, not every second.
    if (form.dataset.state === 'waiting') Object.assign(status.firstChild, { ariaLive: 'off', textContent: sentence })
    else panel('waiting', [sentence], signup.email)
    timer = setTimeout(() => countDown(signup, end), 1_000)
  }

  function show(state, ...content) {
    form.dataset.state = state
    button.ariaDisabled = state === 'sending'
    status.replaceChildren(...content)
  }

  /** Takes the place of the fields, and no less of the page. */
  function panel(state, title, ...lines) {
    if (form.dataset.state === state) return
    const change = make('button', { type: 'button' }, words.change)
    change.onclick = () => {
      clearTimeout(timer)
      pending = undefined
      show('ready')
      email.focus()
    }
    const isFocused = root.activeElement
    form.style.minBlockSize ||= `${form.offsetHeight}px`
    show(state, make('strong', {}, ...title), ...lines.map(line => make('p', {}, line)))
    if (state !== 'done') status.append(change)
    if (isFocused) status.focus()
  }

  function retry() {
    if (timer) deliver(pending)
  }
}

customElements.define(
  'waitlist-form',
  class extends HTMLElement {
    connectedCallback() {
      if (!this.shadowRoot) draw(this)
    }
  },
)
