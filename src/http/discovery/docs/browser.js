// What the documentation page does for a reader besides being read. It is sent within the page.
const root = document.documentElement
const one = (selector, within = document) => within.querySelector(selector)
const all = (selector, within = document) => [...within.querySelectorAll(selector)]

// Without storage, choices last until the page is left.
let storage
try {
  storage = localStorage
} catch {}

// Before the body is drawn, so that nothing moves or flashes.
const known = (name, values) => values.find(value => value === storage?.getItem(`docs-${name}`)) ?? values[0]
root.dataset.script = ''
root.dataset.theme = known('theme', ['', 'light', 'dark'])
root.dataset.language = known('language', ['sh', 'js', 'python'])

function element(name, properties, ...content) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...content)
  return made
}

function theme() {
  const select = one('.theme')
  select.value = root.dataset.theme
  select.onchange = () => {
    root.dataset.theme = select.value
    storage?.setItem('docs-theme', select.value)
  }
}

// One language for all examples. What the reader looks at stays where it is.
function language() {
  const check = () => {
    for (const input of all(`.tabs [value="${root.dataset.language}"]`)) input.checked = true
  }
  check()
  one('main').addEventListener('change', ({ target }) => {
    if (!target.matches('.tabs input')) return
    const before = target.getBoundingClientRect().top
    root.dataset.language = target.value
    check()
    storage?.setItem('docs-language', target.value)
    scrollBy({ top: target.getBoundingClientRect().top - before, behavior: 'instant' })
  })
}

function copying() {
  const said = element('p', { className: 'unseen', role: 'status' })
  document.body.append(said)
  for (const card of all('.code')) {
    const title = one('.title', card).textContent
    const button = element('button', { type: 'button', className: 'copy', ariaLabel: `Copy: ${title}` }, 'Copy')
    const say = (word, sentence) => {
      button.textContent = word
      said.textContent = sentence
    }
    button.onclick = async () => {
      const shown = all('pre', card).find(pre => pre.checkVisibility())
      say(...((await copied(shown)) ? ['Copied', `Copied: ${title}`] : ['Failed', 'The browser refused to copy.']))
      setTimeout(say, 2000, 'Copy', '')
    }
    card.append(button)
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

// Fields get anchors here, since only the search needs them.
function search() {
  const input = one('.search input')
  const list = one('.search ul')
  const count = one('.search p')
  const entries = []
  for (const found of all('main :is(h2, h3, h4, dt, th[scope=row])')) {
    const name = one('a, code', found) ?? found
    const place = one('h3, th a, h2, h1', found.closest('tr, .section, .group'))
    const title = name.textContent
    const id = name.id || found.id || `${place.id}-${title.toLowerCase().replaceAll(/[^\w]+/g, '-')}`
    if (document.getElementById(id) === null) found.id = id
    entries.push({ id, title, text: found.textContent, place: place.contains(name) ? '' : place.textContent })
  }
  const show = () => {
    const words = input.value.toLowerCase().match(/\S+/g)
    const isHit = ({ text, place }) => words.every(word => `${text} ${place}`.toLowerCase().includes(word))
    const hits = words ? entries.filter(isHit) : []
    const results = hits.slice(0, 20).map(({ id, title, place }) => {
      return element('li', {}, element('a', { href: `#${id}` }, title, ' ', element('small', {}, place)))
    })
    list.replaceChildren(...results)
    count.textContent = words ? `${hits.length} result${hits.length === 1 ? '' : 's'}` : ''
  }
  input.oninput = show
  one('.search').onkeydown = event => {
    const links = all('a', list)
    const at = links.indexOf(document.activeElement)
    if (event.key === 'ArrowDown') links[at + 1]?.focus()
    else if (event.key === 'ArrowUp') (links[at - 1] ?? input).focus()
    else if (event.key === 'Enter' && at < 0) links[0]?.click()
    else if (event.key === 'Escape' && input.value !== '') {
      input.value = ''
      show()
      input.focus()
    } else return
    event.preventDefault()
  }
  document.addEventListener('keydown', event => {
    if (
      event.key !== '/' ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      /INPUT|SELECT/.test(document.activeElement.tagName)
    )
      return
    event.preventDefault()
    if (!input.checkVisibility()) one('nav').showPopover()
    input.focus()
  })
}

// The menu is a popover: Escape and what has the focus afterwards are the browser's work.
function menu() {
  const nav = one('nav')
  nav.addEventListener('click', ({ target }) => {
    if (target.closest('a') && nav.matches(':popover-open')) nav.hidePopover()
  })
  matchMedia('(min-width: 64rem)').onchange = () => nav.hidePopover()
}

function arrive() {
  const target = document.getElementById(location.hash.slice(1))
  const folded = target?.closest('details')
  if (folded) folded.open = true
  for (const found of all('.found')) found.classList.remove('found')
  if (target?.tagName === 'DT') {
    target.parentElement.classList.add('found')
    target.scrollIntoView({ block: 'center' })
  }
}

// Marks the section that is read, in the navigation and in the bar.
function marker() {
  const places = all('.links a').map(link => ({ link, target: document.getElementById(link.hash.slice(1)) }))
  let due = false
  const mark = () => {
    due = false
    // At the end, where nothing can be scrolled up any more, it moves down.
    const below = root.scrollHeight - innerHeight - scrollY
    const line = Math.max(110, innerHeight - 4 * below)
    const passed = places.filter(({ target }) => target.checkVisibility() && target.getBoundingClientRect().top <= line)
    const current = scrollY === 0 ? places[0] : (passed.at(-1) ?? places[0])
    for (const { link } of places) {
      if (link === current.link) link.ariaCurrent = 'location'
      else link.removeAttribute('aria-current')
    }
    one('.here').textContent = current.link.firstChild.textContent
  }
  const schedule = () => {
    if (!due) requestAnimationFrame(mark)
    due = true
  }
  addEventListener('scroll', schedule, { passive: true })
  addEventListener('resize', schedule)
  mark()
}

// Sends what the reader tries, and shows what came back, as it came.
function trying() {
  const form = one('.try')
  const { call, name, email } = form.elements
  const button = one('button', form)
  const [status, shown] = one('.answer', form).children
  const fields = all('.person', form)
  const isPost = () => call.value.startsWith('POST')
  call.onchange = () => {
    for (const field of fields) field.hidden = !isPost()
  }
  call.onchange()
  form.onsubmit = async event => {
    event.preventDefault()
    if (button.ariaDisabled) return
    button.ariaDisabled = 'true'
    status.textContent = 'One moment …'
    shown.textContent = ''
    const [method, path] = call.value.split(' ')
    const options = isPost() && {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ name: name.value, email: email.value }),
    }
    try {
      const start = performance.now()
      const response = await fetch(path, { method, cache: 'no-store', ...options })
      const body = await response.text()
      const took = Math.round(performance.now() - start)
      const badge = element('code', { className: `status s${String(response.status)[0]}` }, response.status)
      status.replaceChildren(badge, ` ${response.statusText} after ${took} ms`)
      const lines = [...response.headers].map(([name, value]) => `${name}: ${value}`)
      const isJson = /json/.test(response.headers.get('content-type'))
      shown.append(
        isJson ? JSON.stringify(JSON.parse(body), null, 2) : body,
        '\n\n',
        element('i', { className: 'c' }, lines.join('\n')),
      )
    } catch (error) {
      status.textContent = `No answer: ${error.message}`
    }
    button.ariaDisabled = null
  }
}

document.addEventListener('DOMContentLoaded', () => {
  for (const part of [theme, language, copying, search, menu, marker, trying]) part()
  addEventListener('hashchange', arrive)
  if (location.hash !== '') arrive()
})
