import { paths } from '../../paths.ts'
import { descriptions } from '../links.ts'
import type { OpenapiDocument } from '../openapi.ts'
import { type Block, type Group, idOf, type Outline, type Row, type Section } from './content.ts'
import { highlight } from './highlight.ts'
import { outline } from './outline.ts'
import { escapeHtml, paragraphs, proseToHtml } from './prose.ts'
import { style, styleSource } from './style.ts'

/** OWASP HTTP Headers cheat sheet. The style is allowed by its hash; nothing else can be loaded, run, sent or framed. */
const securityFields: Record<string, string> = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': [
    "default-src 'none'",
    `style-src ${styleSource}`,
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

/** The documentation as one page of HTML without script, and the response fields that it is served with. */
export function docsPage(api: OpenapiDocument, base: string): { html: string; securityFields: Record<string, string> } {
  const content = outline(api, base)
  return { html: page(content, base), securityFields }
}

function page(content: Outline, base: string): string {
  const { title, summary, introduction, groups } = content
  const machineLinks = descriptions
    .filter(({ path }) => path !== paths.docs)
    .map(({ rel, path, type }) => `<link rel="${rel}" type="${type}" href="${escapeHtml(base + path)}">`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${escapeHtml(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${escapeHtml(summary)}">
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
<header class="bar" id="top">${brand(title)}<a class="menu" href="#menu">Menu</a></header>
${navigation(content, base)}
<main id="content">
${introductionHtml(introduction, summary)}
${groups.map(groupHtml).join('\n')}
<footer><p>Version ${escapeHtml(content.version)}, ${escapeHtml(content.license)} licence. This page is made from the <a href="${paths.openapi}">OpenAPI document</a> of this service.</p></footer>
</main>
</body>
</html>
`
}

function navigation({ title, introduction, groups }: Outline, base: string): string {
  const item = (id: string, text: string, method?: string) =>
    `<li><a href="#${id}"><span>${escapeHtml(text)}</span>${method === undefined ? '' : methodBadge(method)}</a></li>`
  const lists = groups.map(({ title, sections }, index) => {
    const first = index === 0 ? item(introduction.id, 'Introduction') : ''
    const items = sections.map(({ id, title, call }) => item(id, title, call?.method))
    return `<h2>${escapeHtml(title)}</h2>\n<ul>${first}${items.join('')}</ul>`
  })
  const forPrograms = [
    ['OpenAPI document', paths.openapi],
    ['API catalog', paths.catalog],
    ['Health report', paths.health],
  ].map(([text, path]) => `<li><a href="${escapeHtml(base + path)}">${text}</a></li>`)
  return `<nav id="menu" aria-label="On this page">
<p>${brand(title)}<a class="close" href="#top">Close</a></p>
${lists.join('\n')}
<h2>For programs</h2>
<ul>${forPrograms.join('')}</ul>
</nav>`
}

const brand = (title: string): string => `<a class="brand" href="#content">${mark}<span>${escapeHtml(title)}</span></a>`

function introductionHtml({ id, title, parts }: Section, summary: string): string {
  return `<section class="group introduction" id="${id}">
<h1>${escapeHtml(title)}</h1>
<p class="lead">${proseToHtml(summary)}</p>
${partsHtml(id, parts)}
</section>`
}

const groupHtml = ({ id, title, text, sections }: Group): string => `<section class="group" aria-labelledby="${id}">
<div class="head"><h2 id="${id}">${selfLink(id, title)}</h2>${text === undefined ? '' : `<p class="about">${proseToHtml(text)}</p>`}</div>
${sections.map(sectionHtml).join('\n')}
</section>`

const sectionHtml = ({ id, title, call, parts }: Section): string => `<section class="section">
<h3 id="${id}">${selfLink(id, title)}</h3>
${call === undefined ? '' : `<p class="call">${methodBadge(call.method)} <code class="path">${escapeHtml(call.path)}</code></p>`}
${partsHtml(id, parts)}
</section>`

const partsHtml = (id: string, parts: Section['parts']): string =>
  parts
    .map(({ text, beside }, part) => {
      const blocks = (list: readonly Block[], side: string) =>
        list.map((block, index) => blockHtml(block, `${id}-${part}${side}${index}`, id)).join('\n')
      const aside = beside.length === 0 ? '' : `<div class="beside">${blocks(beside, 'b')}</div>`
      return `<div class="part"><div class="text">${blocks(text, 't')}</div>${aside}</div>`
    })
    .join('\n')

const selfLink = (id: string, title: string): string => `<a href="#${id}">${escapeHtml(title)}</a>`

const methodBadge = (method: string): string => `<span class="method ${method.toLowerCase()}">${method}</span>`

/** `unique` names controls; `section` is where headings are linked from. */
function blockHtml(block: Block, unique: string, section: string): string {
  if (block.is === 'prose') {
    return paragraphs(block.text)
      .map(text => `<p>${proseToHtml(text)}</p>`)
      .join('\n')
  }
  if (block.is === 'code') return cardHtml(block, unique)
  if (block.is === 'calls') {
    const items = block.calls.map(
      ({ id, method, path, title }) =>
        `<li><a href="#${id}">${methodBadge(method)} <code>${escapeHtml(path)}</code> <span>${escapeHtml(title)}</span></a></li>`,
    )
    return `<div class="card"><p class="title">${block.title}</p><ul class="calls">${items.join('')}</ul></div>`
  }
  const id = `${section}-${idOf(block.title)}`
  const heading = `<h4 id="${id}">${selfLink(id, block.title)}</h4>`
  if (block.is === 'rows') return `${heading}\n<dl class="rows">${block.rows.map(rowHtml).join('')}</dl>`
  const rows = block.refusals.map(
    ({ status, text, sentences }) =>
      `<tr><th scope="row">${statusBadge(status)}</th><td><p>${proseToHtml(text)}</p>${sentences
        .map(sentence => `<p class="sentence">${escapeHtml(sentence)}</p>`)
        .join('')}</td></tr>`,
  )
  return `${heading}
<table><thead><tr><th scope="col">Status</th><th scope="col">Meaning, and what <code>error</code> can say</th></tr></thead>
<tbody>${rows.join('')}</tbody></table>`
}

function rowHtml({ name, notes, text, value }: Row): string {
  const words = notes.map(
    note => `<span class="note${note === 'required' ? ' required' : ''}">${escapeHtml(note)}</span>`,
  )
  const example =
    value === undefined ? '' : `<p class="value">${value.label} <code>${escapeHtml(value.text)}</code></p>`
  return `<div><dt><code>${escapeHtml(name)}</code> ${words.join(' ')}</dt><dd><p>${proseToHtml(text)}</p>${example}</dd></div>`
}

const statusBadge = (status: string): string => `<span class="status s${status[0]}">${status}</span>`

/** Examples of the same thing in several languages are tabs: radio buttons, so that they need no script. */
function cardHtml({ title, status, samples }: Extract<Block, { is: 'code' }>, unique: string): string {
  const name = `<span class="title">${status === undefined ? '' : `${statusBadge(status)} `}${escapeHtml(title)}</span>`
  const code = samples.map(
    sample =>
      `${samples.length === 1 ? '' : `<p class="panel-title">${sample.title}</p>`}<pre tabindex="0" role="group" aria-label="${escapeHtml(`${title}, ${sample.title}`)}" data-language="${sample.language}"><code>${highlight(sample.code)}</code></pre>`,
  )
  if (samples.length === 1) return `<div class="card">${name}${code.join('')}</div>`
  const tabs = samples.map(({ title }, index) => {
    const checked = index === 0 ? ' checked' : ''
    return `<input type="radio" name="${unique}" id="${unique}-${index}"${checked}><label for="${unique}-${index}">${title}</label>`
  })
  return `<fieldset class="card tabs"><legend>${escapeHtml(title)}: language</legend>${name}${tabs.join('')}${code.join('')}</fieldset>`
}
