const form = document.querySelector('[data-waitlist]')
const { name, email } = form.elements
const button = form.querySelector('button')
const status = form.querySelector('[role=status]')
const widget = form.querySelector('altcha-widget')
const service = `${form.dataset.waitlist}/api/waitlist${location.search}`
const address =
  /^(?!\.)(?!.*\.[.@])[\w!#$%&'*+/=?^`{|}~.-]+@((?!-)[a-z\d-]{1,63}(?<!-)\.)+(?![\d-])[a-z\d-]{1,63}(?<!-)$/i

const hint = (input, problem) => {
  input.ariaInvalid = problem !== ''
  input.nextElementSibling.textContent = problem
  return problem === ''
}
const check = input => {
  const text = input.value.trim()
  const [what, most] = input === name ? ['name', 100] : ['email address', 255]
  if (text === '') return hint(input, `Please enter your ${what}.`)
  if ([...text].length > most) return hint(input, `Please use at most ${most} characters.`)
  return hint(input, input === name || address.test(text) ? '' : 'Please check this email address.')
}
const say = (state, sentence) => {
  form.dataset.state = state
  status.ariaLive = 'polite'
  status.textContent = sentence
  status.scrollIntoView({ block: 'nearest' })
  button.ariaDisabled = state === 'sending' || state === 'waiting'
}
const done = sentence => {
  const { content } = form.querySelector('template')
  const words = { name: name.value, email: email.value, sentence }
  for (const [of, word] of Object.entries(words)) content.querySelector(`.${of}`).textContent = word.trim()
  // The page does not move when the fields go.
  form.style.minHeight = `${form.offsetHeight}px`
  say('done', '')
  status.append(content)
  status.focus()
}
const wait = seconds => {
  const end = Date.now() + seconds * 1000
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000)
    if (left <= 0) return say('ready', 'You can try again now.')
    const sentence = `Too many attempts. You can try again in ${left > 90 ? `${Math.ceil(left / 60)} min` : `${left} s`}.`
    if (form.dataset.state !== 'waiting') say('waiting', sentence)
    // Read aloud once, not every second.
    else Object.assign(status, { ariaLive: 'off', textContent: sentence })
    setTimeout(tick, 500)
  }
  tick()
}

// The widget: its worker is a file of its own, so that a strict Content Security Policy allows it.
globalThis.$altcha?.algorithms.set('PBKDF2/SHA-256', () => new Worker('pbkdf2.js'))
widget.setAttribute('challenge', `${form.dataset.waitlist}/api/challenge`)
// It is solved while the visitor types, and again if that took too long. What is under way is waited for.
const solve = async () => {
  if (widget.getState?.() === 'verifying') await new Promise(resolve => widget.addEventListener('statechange', resolve))
  return widget.getState?.() === 'verified' || widget.verify?.()
}

// A hint comes when a field is left, and goes while it is put right.
form.addEventListener(
  'focusout',
  ({ target }) => [name, email].includes(target) && target.value.trim() && check(target),
)
form.addEventListener('input', ({ target }) => target.ariaInvalid === 'true' && check(target))

form.addEventListener('submit', async event => {
  event.preventDefault()
  if (button.ariaDisabled === 'true') return
  const wrong = [name, email].filter(input => !check(input))
  say('ready', '')
  if (wrong.length > 0) return wrong[0].focus()
  const offline = 'You are offline. Please try again when you are connected.'
  if (!navigator.onLine) return say('failed', offline)

  say('sending', 'One moment …')
  if (!(await solve())) {
    console.warn(
      `No solution. Does altcha.min.js load, is CHALLENGE=altcha set, is ${location.origin} in CORS_ORIGINS?`,
    )
    return say('failed', navigator.onLine ? 'The challenge could not be loaded or solved. Please try again.' : offline)
  }
  const bound = new AbortController()
  const timers = [
    setTimeout(say, 4_000, 'sending', 'This takes longer than usual …'),
    setTimeout(() => bound.abort(), 30_000),
  ]
  try {
    const response = await fetch(service, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      credentials: 'include',
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
      signal: bound.signal,
    })
    const {
      success,
      message = 'You are on the waitlist.',
      error = 'that did not work',
    } = await response.json().catch(() => ({}))
    const sentence = `${error[0].toUpperCase()}${error.slice(1)}.`
    const input = form.elements[/\b(name|email)\b/.exec(error)?.[0]]
    if (success) done(message)
    // An error for us, but not for the visitor: the signup is stored, and only its completion is late.
    else if (response.headers.get('Waitlist-Signup') === 'saved')
      done('Your signup is saved. You will be on the waitlist shortly.')
    else if (response.status === 429) wait(Number(response.headers.get('Retry-After')) || 60)
    else if (response.status === 400) {
      // A solution is good for one address, and for ten minutes.
      widget.reset()
      if (!input) return say('failed', sentence)
      say('ready', '')
      hint(input, sentence)
      input.focus()
    } else say('failed', sentence)
  } catch {
    if (bound.signal.aborted)
      return say(
        'failed',
        'No answer came, so we do not know whether it arrived. Trying again is safe: nobody is listed twice.',
      )
    if (!navigator.onLine) return say('failed', offline)
    say('failed', 'The waitlist could not be reached. Please try again.')
    console.warn(
      `No answer of ${service} that this page may read. Is it running, and is ${location.origin} in its CORS_ORIGINS?`,
    )
  } finally {
    timers.forEach(clearTimeout)
  }
})
button.disabled = false
