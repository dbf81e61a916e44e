import { paths } from '../../paths.ts'
import type { OpenapiDocument } from '../openapi.ts'
import type { Block, Row, Section } from './content.ts'
import { outline } from './outline.ts'
import { codeSpan, escapeMarkdown, paragraphs, proseToMarkdown } from './prose.ts'

/** The documentation as Markdown (CommonMark; RFC 7763): the same outline as the page, in the same order. */
export function docsMarkdown(api: OpenapiDocument, base: string): string {
  const { title, version, license, summary, introduction, groups } = outline(api, base)
  const blocks = [
    `# ${escapeMarkdown(title)}`,
    proseToMarkdown(summary),
    ...introduction.parts.flatMap(({ text, beside }) => [...text, ...beside].map(blockMarkdown)),
    ...groups.flatMap(({ title, text, sections }) => [
      `## ${escapeMarkdown(title)}`,
      ...(text === undefined ? [] : [proseToMarkdown(text)]),
      ...sections.flatMap(sectionMarkdown),
    ]),
    `Version ${codeSpan(version)}, ${escapeMarkdown(license)} licence. Made from the [OpenAPI document](${base}${paths.openapi}) of this service.`,
  ]
  return `${blocks.join('\n\n')}\n`
}

const sectionMarkdown = ({ title, call, parts }: Section): string[] => [
  `### ${escapeMarkdown(title)}`,
  ...(call === undefined ? [] : [codeSpan(`${call.method} ${call.path}`)]),
  ...parts.flatMap(({ text, beside }) => [...text, ...beside].map(blockMarkdown)),
]

function blockMarkdown(block: Block): string {
  switch (block.is) {
    case 'prose':
      return paragraphs(block.text).map(proseToMarkdown).join('\n\n')
    case 'rows':
      return `#### ${block.title}\n\n${block.rows.map(rowMarkdown).join('\n')}`
    case 'refusals': {
      const items = block.refusals.map(({ status, text, sentences }) => {
        const told = sentences.map(sentence => `\n  - “${escapeMarkdown(sentence)}”`)
        return `- ${codeSpan(status)}: ${proseToMarkdown(text)}${told.join('')}`
      })
      return `#### ${block.title}\n\n${items.join('\n')}`
    }
    case 'calls': {
      const items = block.calls.map(
        ({ id, method, path, title }) => `- [${codeSpan(`${method} ${path}`)}](#${id}): ${escapeMarkdown(title)}`,
      )
      return `**${block.title}**\n\n${items.join('\n')}`
    }
    case 'code': {
      const title = [block.status, block.title].filter(part => part !== undefined).join(' ')
      const samples = block.samples.map(({ title, language, code }) => {
        const fence = '`'.repeat(Math.max(3, ...(code.match(/`+/g) ?? []).map(run => run.length + 1)))
        const name = block.samples.length === 1 ? '' : `${title}:\n\n`
        return `${name}${fence}${language}\n${code}\n${fence}`
      })
      return `**${escapeMarkdown(title)}**\n\n${samples.join('\n\n')}`
    }
  }
}

function rowMarkdown({ name, notes, text, value }: Row): string {
  const words = notes.length === 0 ? '' : ` (${escapeMarkdown(notes.join(', '))})`
  const example = value === undefined ? '' : ` ${value.label}: ${codeSpan(value.text)}`
  return `- ${codeSpan(name)}${words}: ${proseToMarkdown(text)}${example}`
}
