import { Marked, type Tokens } from 'marked'
import { colours, compact, hashSource, icon, mark, styleSheet } from '../../../pages/frame.ts'
import { escapeHtml } from '../../../pages/html.ts'
import { paths } from '../../paths.ts'
import { descriptions } from '../catalog.ts'
import type { Installation, OpenapiDocument } from '../openapi.ts'
import { blocks, idOf } from './commonmark.ts'
import { colophon, everything } from './markdown.ts'
import { callsOf } from './shape.ts'

const style = styleSheet(new URL('./page.css', import.meta.url))
const script = compact(new URL('./browser.js', import.meta.url))

/**
 * OWASP HTTP Headers cheat sheet. The style and the script are allowed by their hashes (CSP level 3 §2.3.1). The script
 * may call this service, since it sends what a reader tries; nothing else can be loaded, run, sent or framed.
 */
const securityFields: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': [
    "default-src 'none'",
    `script-src ${hashSource(script)}`,
    `style-src ${hashSource(style)}`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
}

/** Plain CommonMark, so that only what is written as a link becomes one. */
const marked = new Marked({
  gfm: false,
  renderer: {
    html: ({ text }) => escapeHtml(text),
    link({ href, tokens }) {
      return `<a href="${escapeHtml(href)}">${this.parser.parseInline(tokens)}</a>`
    },
    codespan({ text }) {
      const [, method, path] = /^([A-Z]+) (\/.*)$/.exec(text) ?? []
      if (method !== undefined) return `${methodBadge(method)} <code class="path">${escapeHtml(path!)}</code>`
      return /^[1-5](\d\d|XX)$/.test(text)
        ? `<code class="status s${text[0]}">${text}</code>`
        : `<code>${escapeCode(text)}</code>`
    },
    /** An item of several paragraphs is a name and its meaning. */
    list({ loose, items }) {
      if (!loose) return `<ul>${items.map(({ tokens }) => `<li>${this.parser.parse(tokens)}</li>`).join('')}</ul>`
      const entries = items.map(({ tokens }) => {
        const [name, ...meaning] = tokens.filter(({ type }) => type !== 'space')
        return `<div><dt>${this.parser.parseInline((name as Tokens.Paragraph).tokens)}</dt><dd>${this.parser.parse(meaning)}</dd></div>`
      })
      return `<dl>${entries.join('')}</dl>`
    },
  },
})

const parser = new marked.Parser(marked.defaults)
const inline = ({ tokens = [] }: Block): string => parser.parseInline(tokens)

/** A Markdown block as the library reads it. */
type Block = Tokens.Generic

const blocksOf = (markdown: string): Block[] => marked.lexer(markdown).filter(({ type }) => type !== 'space')

const toHtml = (markdown: string): string => parser.parse(blocksOf(markdown))

const methodBadge = (method: string): string => `<span class="method ${method.toLowerCase()}">${method}</span>`

/**
 * The documentation as one HTML page, and the response fields to serve it with. It says what the Markdown says, and can try
 * a call.
 */
export function docsPage(
  api: OpenapiDocument,
  base: string,
  challenge: Installation['challenge'],
): { html: string; securityFields: Record<string, string> } {
  const { info } = api
  const [[title, ...opening], start, ...others] = split(blocksOf(everything(api, base, challenge)), 2)
  const groups = [[...start!, ...blocksOf(tryIt(api, challenge))] as Titled, ...others]
  const machineLinks = descriptions
    .filter(({ path }) => path !== paths.docs)
    .map(({ rel, path, type }) => `<link rel="${rel}" type="${type}" href="${escapeHtml(base + path)}">`)
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(info.title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${escapeHtml(info.summary)}">
<meta name="color-scheme" content="light dark">
<link rel="canonical" href="${escapeHtml(base + paths.docs)}">
<link rel="alternate" type="text/markdown" href="${escapeHtml(base + paths.docs)}">
<link rel="api-catalog" type="application/linkset+json" href="${escapeHtml(base + paths.catalog)}">
${machineLinks.join('\n')}
<link rel="icon" href="${icon(colours.brand)}">
<style>${style}</style>
<script type="module">${script}</script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="bar"><a class="brand" href="#introduction">${mark(colours.brand)}<span>${escapeHtml(info.title)}</span></a><button class="menu" popovertarget="menu">Menu</button></header>
<nav id="menu" popover aria-label="On this page">
<ul><li><a href="#introduction">Introduction</a></li></ul>
${groups.map(groupLinks).join('\n')}
</nav>
<main id="content">
<section class="group" id="introduction">
<h1>${inline(title)}</h1>
${partsHtml('introduction', opening)}
</section>
${groups.map(group => groupHtml(group, tryHtml(api))).join('\n')}
<footer>${toHtml(colophon(api, base))}</footer>
</main>
<p class="unseen" role="status"></p>
</body>
</html>
`
  return { html, securityFields }
}

const TRY_IT = 'Try it'

function tryIt(api: OpenapiDocument, challenge: Installation['challenge']): string {
  const duplicate =
    'alreadyExisted' in api.components.schemas.SignupResult.properties ? ', or twice to see a duplicate' : ''
  return blocks(
    `### ${TRY_IT}`,
    'This sends a real request to this service and shows the real answer.',
    challenge !== null && challenge.widget !== null
      ? `A signup sent here is refused, since it needs a ${challenge.title} solution, which this page cannot get: it loads nothing from elsewhere. Try it in [your form](#a-form-for-your-page). Every attempt counts towards your quota.`
      : `A signup sent here is a real one: it is recorded, and counts towards your quota. Send it empty to see an error${duplicate}.`,
    challenge !== null && challenge.widget === null
      ? 'The challenge is solved first, which takes seconds and needs HTTPS or `localhost`.'
      : undefined,
    'Browsers hide one header of the answer from pages: `Set-Cookie`.',
  )
}

/** The blocks before the first heading of this depth, then each such heading with the blocks that follow it. */
function split(list: readonly Block[], depth: number): [Titled, ...Titled[]] {
  const starts = list.flatMap((block, index) => (block.type === 'heading' && block.depth === depth ? [index] : []))
  return [0, ...starts].map((start, index) => list.slice(start, starts[index])) as [Titled, ...Titled[]]
}

/** A heading and its content. */
type Titled = [heading: Block, ...Block[]]

const linkTo = (title: string, label: string, method?: string): string =>
  `<li${title === TRY_IT ? ' class="scripted"' : ''}><a href="#${idOf(title)}">${label}${method === undefined ? '' : methodBadge(method)}</a></li>`

function groupLinks(group: Titled): string {
  const [[heading], ...sections] = split(group, 3)
  const items = sections.map(([title, first]) => {
    const [, method] = /^`([A-Z]+) /.exec(first?.raw ?? '') ?? []
    return linkTo(title.text, inline(title), method)
  })
  return `<h2>${inline(heading)}</h2>\n<ul>${items.join('')}</ul>`
}

function groupHtml(group: Titled, form: string): string {
  const [[heading, ...about], ...sections] = split(group, 3)
  const id = idOf(heading.text)
  return `<section class="group">
<div class="head">${headingHtml(heading, id)}${parser.parse(about)}</div>
${sections.map(section => sectionHtml(form, section)).join('')}
</section>`
}

function sectionHtml(form: string, [heading, ...list]: Titled): string {
  const id = idOf(heading.text)
  const isTry = heading.text === TRY_IT
  // Of a call that only reads, most readers want no more than what it is for.
  const folds = /^`GET /.test(list[0]?.raw ?? '')
  return `<section class="section${isTry ? ' scripted' : ''}">
${headingHtml(heading, id)}
${partsHtml(id, list, folds, isTry ? form : '')}
</section>`
}

/** Without the script it is not shown, and a form could not be sent: the policy forbids it. */
function tryHtml(api: OpenapiDocument): string {
  const calls = callsOf(api).map(({ method, path, operation }) => {
    const call = `${method} ${path}`
    return `<option value="${call}">${call} – ${escapeHtml(operation.summary)}</option>`
  })
  // Where this service makes challenges, a call that is tried solves one first.
  const challenge = paths.challenge in api.paths ? ` data-challenge="${paths.challenge}"` : ''
  return `<form class="card try" novalidate${challenge}>
<label>Call<select name="call">${calls.join('')}</select></label>
<label class="person">Name<input name="name" autocomplete="off" placeholder="Ada Lovelace"></label>
<label class="person">Email<input name="email" type="email" autocomplete="off" placeholder="ada@example.com"></label>
<button>Send</button>
<div class="answer"><p role="status">The answer appears here.</p><pre tabindex="0" role="group" aria-label="Headers and body of the answer"></pre></div>
</form>`
}

const headingHtml = (heading: Block, id: string): string =>
  `<h${heading.depth} id="${id}"><a href="#${id}">${inline(heading)}</a></h${heading.depth}>`

/** Text, with the examples that follow it beside it. A line in bold is the title of an example. */
function partsHtml(section: string, list: readonly Block[], folds = false, form = ''): string {
  const parts: { text: Block[]; examples: Titled[] }[] = [{ text: [], examples: [] }]
  for (const block of list) {
    const { text, examples } = parts.at(-1)!
    const example = examples.at(-1)
    const isExample = example !== undefined && (block.type === 'code' || example.length === 1)
    if (/^\*\*[^*]+\*\*$/.test(block.raw.trim())) examples.push([block])
    else if (isExample) example.push(block)
    else if (example === undefined) text.push(block)
    else parts.push({ text: [block], examples: [] })
  }
  return parts
    .map(({ text, examples }, part) => {
      const cards = examples.map((example, index) => cardHtml(example, `${section}-${part}-${index}`))
      const beside = cards.length === 0 ? form : cards.join('')
      return `<div class="part"><div class="text">${textHtml(text, folds)}</div>${beside && `<div class="beside">${beside}</div>`}</div>`
    })
    .join('\n')
}

/** Paragraphs, and lists with a heading each. */
function textHtml(text: readonly Block[], folds: boolean): string {
  const [opening, ...lists] = split(text, 4)
  const listed = lists.map(([heading, ...list]) =>
    folds
      ? `<details><summary>${inline(heading)}</summary>${parser.parse(list)}</details>`
      : `<h4>${inline(heading)}</h4>${parser.parse(list)}`,
  )
  return parser.parse(opening) + listed.join('')
}

const languages: Readonly<Record<string, string>> = {
  sh: 'curl',
  js: 'JavaScript',
  python: 'Python',
  html: 'HTML',
  json: 'JSON',
  http: 'HTTP',
}

/** More lines than this are scrolled. */
const LONG = 30

/** Examples of the same thing in several languages are tabs: radio buttons, so that they need no script. */
function cardHtml([heading, ...content]: Titled, id: string): string {
  const [bold] = heading.tokens as [Tokens.Strong]
  const title = bold.text.replaceAll('`', '')
  const samples = content.filter(({ type }) => type === 'code')
  const isAlone = samples.length === 1
  const blocks = content.map(block => {
    if (block.type !== 'code') return parser.parse([block])
    const language = languages[block.lang]!
    const name = isAlone ? '' : `<p class="panel-title">${language}</p>`
    const isData = block.lang === 'json' || block.lang === 'http'
    const isLong = block.text.split('\n').length > LONG
    // What can be scrolled must be reachable by keyboard.
    const scrolled = isLong ? ` class="long" tabindex="0" role="group" aria-label="${escapeHtml(title)}"` : ''
    return `${name}<pre${isData ? '' : ` data-language="${block.lang}"`}${scrolled}><code>${highlight(block.text)}</code></pre>`
  })
  const visible = `<span class="title">${inline(bold)}</span>`
  if (samples.length === 0) return `<div class="card">${visible}${blocks.join('')}</div>`
  const copy = `<button class="copy scripted" aria-label="Copy: ${escapeHtml(title)}">Copy</button>`
  if (isAlone) return `<div class="card code">${visible}${copy}${blocks.join('')}</div>`
  const tabs = samples.map(({ lang }, index) => {
    const checked = index === 0 ? ' checked' : ''
    return `<input type="radio" name="${id}" id="${id}-${index}" value="${lang}"${checked}><label for="${id}-${index}">${languages[lang]}</label>`
  })
  return `<fieldset class="card code tabs"><legend>${escapeHtml(title)}: language</legend>${visible}${tabs.join('')}${copy}${blocks.join('')}</fieldset>`
}

/** Safe as the content of an element: in code, quotes are many. */
const escapeCode = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** One pattern for all languages of the examples. The name of the group is the kind of the token. */
const token = new RegExp(
  [
    String.raw`(?<comment>(?<=^|\s)(?:\/\/|#) .*|<!--.*?-->)`,
    String.raw`(?<key>"[\w-]+"(?=: )|^[A-Z][\w-]+(?=: ))`,
    String.raw`(?<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')`,
    String.raw`(?<tag><\/?[a-z][\w-]*|(?<=["\w/])>$)`,
    String.raw`(?<flag>(?<=\s)--?[A-Za-z]+\b)`,
    String.raw`(?<word>\b(?:as|async|await|catch|const|curl|except|from|if|import|new|print|return|try|with)\b(?!-))`,
    String.raw`(?<literal>(?<![\w.:\/-])(?:true|false|null|\d+)(?=,?$))`,
  ].join('|'),
  'gm',
)

/** What marks a token. Short, since there are hundreds: the commonest kinds have an element that says nothing. */
const marks: Readonly<Record<string, string>> = {
  string: 'i',
  key: 'b',
  tag: 'b',
  word: 'u',
  comment: 'i class=c',
  flag: 'var',
  literal: 'var',
}

/** Colours an example. Its text stays the same, character by character. */
function highlight(code: string): string {
  let html = ''
  let end = 0
  for (const match of code.matchAll(token)) {
    const [name] = Object.entries(match.groups ?? {}).find(([, text]) => text !== undefined) ?? []
    const mark = marks[name!]!
    html += `${escapeCode(code.slice(end, match.index))}<${mark}>${escapeCode(match[0])}</${mark.split(' ', 1)[0]}>`
    end = match.index + match[0].length
  }
  return html + escapeCode(code.slice(end))
}
