import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Marked, type Tokens } from 'marked'
import { paths } from '../../paths.ts'
import { descriptions } from '../links.ts'
import type { OpenapiDocument } from '../openapi.ts'
import { idOf } from './commonmark.ts'
import { escapeHtml, highlight } from './html.ts'

const style = readFileSync(new URL('./page.css', import.meta.url), 'utf8')

/**
 * OWASP HTTP Headers cheat sheet. The style is allowed by its hash (CSP level 3 §2.3.1); nothing else can be loaded,
 * run, sent or framed.
 */
const securityFields: Record<string, string> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': [
    "default-src 'none'",
    `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`,
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

const mark = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32' aria-hidden='true'><rect width='32' height='32' rx='9' fill='#3547c8'/><path d='M9 10h14M9 16h14M9 22h7' stroke='#fff' stroke-width='3' stroke-linecap='round'/></svg>`
const icon = `data:image/svg+xml,${encodeURIComponent(mark)}`

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
        : `<code>${escapeHtml(text)}</code>`
    },
    /** An item of several paragraphs is a name and its meaning. */
    list({ loose, items }) {
      if (!loose) return `<ul>${items.map(({ tokens }) => `<li>${this.parser.parse(tokens)}</li>`).join('')}</ul>\n`
      const entries = items.map(({ tokens }) => {
        const [name, ...meaning] = tokens.filter(({ type }) => type !== 'space')
        return `<div><dt>${this.parser.parseInline((name as Tokens.Paragraph).tokens)}</dt><dd>${this.parser.parse(meaning)}</dd></div>`
      })
      return `<dl>${entries.join('')}</dl>\n`
    },
  },
})

const parser = new marked.Parser(marked.defaults)
const inline = ({ tokens = [] }: Block): string => parser.parseInline(tokens)

/** A Markdown block as the library reads it. */
type Block = Tokens.Generic

const methodBadge = (method: string): string => `<span class="method ${method.toLowerCase()}">${method}</span>`

/** The Markdown as an HTML page without script, and the response fields to serve it with. */
export function docsPage(
  { info }: OpenapiDocument,
  base: string,
  markdown: string,
): { html: string; securityFields: typeof securityFields } {
  const all: Block[] = marked.lexer(markdown).filter(({ type }) => type !== 'space')
  const end = all.findLastIndex(({ type }) => type === 'hr')
  const [[title, ...introduction], ...groups] = split(all.slice(0, end), 2)
  const machineLinks = descriptions
    .filter(({ path }) => path !== paths.docs)
    .map(({ rel, path, type }) => `<link rel="${rel}" type="${type}" href="${escapeHtml(base + path)}">`)
  const brand = `<a class="brand" href="#content">${mark}<span>${escapeHtml(info.title)}</span></a>`
  const page = `<!doctype html>
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
<link rel="icon" href="${escapeHtml(icon)}">
<style>${style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="bar" id="top">${brand}<a class="menu" href="#menu">Menu</a></header>
<nav id="menu" aria-label="On this page">
<p>${brand}<a class="close" href="#top">Close</a></p>
<ul><li><a href="#introduction">Introduction</a></li></ul>
${groups.map(groupLinks).join('\n')}
<h2>For programs</h2>
<ul><li><a href="${paths.openapi}">OpenAPI document</a></li><li><a href="${paths.catalog}">API catalog</a></li><li><a href="${paths.health}">Health report</a></li></ul>
</nav>
<main id="content">
<section class="group" id="introduction">
<h1>${inline(title)}</h1>
${partsHtml('introduction', introduction)}
</section>
${groups.map(groupHtml).join('\n')}
<footer>${parser.parse(all.slice(end + 1))}</footer>
</main>
</body>
</html>
`
  return { html: page, securityFields }
}

/** The blocks before the first heading of this depth, then each such heading with the blocks that follow it. */
function split(list: readonly Block[], depth: number): [Titled, ...Titled[]] {
  const starts = list.flatMap((block, index) => (block.type === 'heading' && block.depth === depth ? [index] : []))
  return [0, ...starts].map((start, index) => list.slice(start, starts[index])) as [Titled, ...Titled[]]
}

/** A heading and its content. */
type Titled = [heading: Block, ...Block[]]

function groupLinks(group: Titled): string {
  const [[heading], ...sections] = split(group, 3)
  const items = sections.map(([title, first]) => {
    const [, method] = /^`([A-Z]+) /.exec(first?.raw ?? '') ?? []
    return `<li><a href="#${idOf(title.text)}"><span>${inline(title)}</span>${method === undefined ? '' : methodBadge(method)}</a></li>`
  })
  return `<h2>${inline(heading)}</h2>\n<ul>${items.join('')}</ul>`
}

function groupHtml(group: Titled): string {
  const [[heading, ...about], ...sections] = split(group, 3)
  const id = idOf(heading.text)
  return `<section class="group" aria-labelledby="${id}">
<div class="head">${headingHtml(heading, id)}
${parser.parse(about)}</div>
${sections.map(sectionHtml).join('\n')}
</section>`
}

function sectionHtml([heading, ...list]: Titled): string {
  const id = idOf(heading.text)
  return `<section class="section">
${headingHtml(heading, id)}
${partsHtml(id, list)}
</section>`
}

const headingHtml = (heading: Block, id: string): string =>
  `<h${heading.depth} id="${id}"><a href="#${id}">${inline(heading)}</a></h${heading.depth}>`

/** Text, with the examples that follow it beside it. A line in bold is the title of an example. */
function partsHtml(section: string, list: readonly Block[]): string {
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
      const beside = cards.length === 0 ? '' : `<div class="beside">${cards.join('\n')}</div>`
      return `<div class="part"><div class="text">${text.map(block => blockHtml(block, section)).join('')}</div>${beside}</div>`
    })
    .join('\n')
}

const blockHtml = (block: Block, section: string): string =>
  block.type === 'heading' ? headingHtml(block, `${section}-${idOf(block.text)}`) : parser.parse([block])

const languages: Readonly<Record<string, string>> = {
  sh: 'curl',
  js: 'JavaScript',
  python: 'Python',
  html: 'HTML',
  json: 'JSON',
  http: 'HTTP',
}

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
    return `${name}<pre tabindex="0" role="group" aria-label="${escapeHtml(`${title}, ${language}`)}" data-language="${block.lang}"><code>${highlight(block.text)}</code></pre>`
  })
  const visible = `<span class="title">${inline(bold)}</span>`
  if (samples.length < 2) return `<div class="card">${visible}${blocks.join('')}</div>`
  const tabs = samples.map(({ lang }, index) => {
    const checked = index === 0 ? ' checked' : ''
    return `<input type="radio" name="${id}" id="${id}-${index}"${checked}><label for="${id}-${index}">${languages[lang]}</label>`
  })
  return `<fieldset class="card tabs"><legend>${escapeHtml(title)}: language</legend>${visible}${tabs.join('')}${blocks.join('')}</fieldset>`
}
