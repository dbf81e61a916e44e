// What the documentation does for a reader besides being read: it copies examples and tries calls. It is sent within the page.
const one = (selector, within = document) => within.querySelector(selector)
const all = (selector, within = document) => [...within.querySelectorAll(selector)]

const said = one('body > [role=status]')
for (const card of all('.code')) {
  const button = one('.copy', card)
  const title = one('.title', card).textContent
  const say = (word, sentence) => {
    button.textContent = word
    said.textContent = sentence
  }
  button.onclick = async () => {
    const shown = all('pre', card).find(pre => pre.checkVisibility())
    say(...((await copied(shown)) ? ['Copied', `Copied: ${title}`] : ['Failed', 'The browser refused to copy.']))
    setTimeout(say, 2000, 'Copy', '')
  }
}

async function copied(shown) {
  try {
    await navigator.clipboard.writeText(shown.textContent)
    return true
  } catch {
    // Over plain HTTP there is no clipboard, only the selection.
    getSelection().selectAllChildren(shown)
    return document.execCommand('copy')
  }
}

// The menu is a popover, which the browser opens and closes. A link in it leads to what it covers.
const menu = one('nav')
menu.onclick = ({ target }) => target.closest('a') && menu.hidePopover()
matchMedia('(min-width: 64rem)').onchange = () => menu.hidePopover()

const form = one('.try')
const { call, name, email } = form.elements
const send = one('button', form)
const [status, answer] = one('.answer', form).children
const isPost = () => call.value.startsWith('POST')

function element(name, className, textContent) {
  return Object.assign(document.createElement(name), { className, textContent })
}

call.onchange = () => {
  for (const field of all('.person', form)) field.hidden = !isPost()
}
call.onchange()

form.onsubmit = async event => {
  event.preventDefault()
  if (send.ariaDisabled) return
  send.ariaDisabled = 'true'
  status.textContent = 'One moment …'
  answer.textContent = ''
  try {
    const [method, path] = call.value.split(' ')
    const { challenge } = form.dataset
    const altcha = challenge && name.value && email.value && isPost() ? await solution(challenge) : undefined
    const options = isPost() && {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: name.value, email: email.value, altcha }),
    }
    const start = performance.now()
    const response = await fetch(path, { method, cache: 'no-store', ...options })
    const body = await response.text()
    const took = Math.round(performance.now() - start)
    const badge = element('code', `status s${String(response.status)[0]}`, response.status)
    status.replaceChildren(badge, ` ${response.statusText} after ${took} ms`)
    const isJson = /json/.test(response.headers.get('content-type'))
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`)
    answer.append(isJson ? JSON.stringify(JSON.parse(body), null, 2) : body, '\n\n')
    answer.append(element('i', 'c', headers.join('\n')))
  } catch (error) {
    status.textContent = `No answer: ${error.message}`
  }
  send.ariaDisabled = null
}

// Solves a challenge of this service as its widget does. Without a solution the answer says so.
async function solution(path) {
  try {
    const challenge = await (await fetch(path)).json()
    const { nonce, salt, cost: iterations, keyLength, keyPrefix } = challenge.parameters
    const how = { name: 'PBKDF2', hash: 'SHA-256', salt: Uint8Array.fromHex(salt), iterations }
    const guess = Uint8Array.fromHex(`${nonce}00000000`)
    for (let counter = 0; ; counter++) {
      new DataView(guess.buffer).setUint32(guess.length - 4, counter)
      const key = await crypto.subtle.importKey('raw', guess, 'PBKDF2', false, ['deriveBits'])
      const derivedKey = new Uint8Array(await crypto.subtle.deriveBits(how, key, 8 * keyLength)).toHex()
      if (derivedKey.startsWith(keyPrefix))
        return btoa(JSON.stringify({ challenge, solution: { counter, derivedKey } }))
    }
  } catch {}
}
